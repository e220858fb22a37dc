#include "divan/text/languages.h"

#include <algorithm>

#include "divan/text/stop_words_data.h"

namespace divan::text {
namespace {

constexpr std::string_view kCatalanArticles = "d l m n s t ";
constexpr std::string_view kFrenchArticles = "l m t qu n s j d c jusqu quoiqu lorsqu puisqu ";
constexpr std::string_view kIrishArticles = "d m b ";
constexpr std::string_view kItalianArticles =
    "c l all dall dell nell sull coll pell gl agl dagl degl negl sugl un m t s v d ";

Language of_rules(std::string_view name, TokenizerRules rules, std::string_view words = {}) {
  Language language{name, {}, words};
  language.filters.rules = rules;
  return language;
}

Language without_stop_words(std::string_view name, TokenizerRules rules) {
  Language language = of_rules(name, rules);
  language.has_stop_words = false;
  return language;
}

Language of_stemmer(std::string_view name, Stemmer stemmer, std::string_view words) {
  Language language = of_rules(name, TokenizerRules::standard, words);
  language.filters.stemmer = stemmer;
  return language;
}

Language with_ascii_folding(Language language) {
  language.filters.folds_to_ascii = true;
  return language;
}

Language with_width_folding(Language language) {
  language.filters.folds_width = true;
  return language;
}

Language with_possessive(Language language) {
  language.filters.removes_possessive = true;
  return language;
}

Language with_articles(Language language, std::string_view articles) {
  language.filters.articles = articles;
  return language;
}

Language with_folding(Language language, CaseFolding folding) {
  language.filters.folding = folding;
  return language;
}

const std::vector<Language>& languages() {
  static const std::vector<Language> all = {
      with_folding(without_stop_words("keyword", TokenizerRules::keyword), CaseFolding::none),
      without_stop_words("simple", TokenizerRules::letter),
      with_folding(without_stop_words("whitespace", TokenizerRules::whitespace), CaseFolding::none),
      with_ascii_folding(without_stop_words("simple_asciifolding", TokenizerRules::letter)),
      of_rules("classic", TokenizerRules::classic, kEnglishStopWords),
      of_rules("standard", TokenizerRules::standard, kEnglishStopWords),
      of_rules("email", TokenizerRules::email, kEnglishStopWords),
      of_stemmer("arabic", Stemmer::arabic, kArabicStopWords),
      of_stemmer("armenian", Stemmer::armenian, kArmenianStopWords),
      of_stemmer("basque", Stemmer::basque, kBasqueStopWords),
      of_stemmer("brazilian", Stemmer::portuguese, kBrazilianStopWords),
      of_stemmer("bulgarian", Stemmer::none, kBulgarianStopWords),
      with_articles(of_stemmer("catalan", Stemmer::catalan, kCatalanStopWords), kCatalanArticles),
      of_rules("chinese", TokenizerRules::dictionary),
      with_width_folding(of_rules("cjk", TokenizerRules::bigrams, kCjkStopWords)),
      of_stemmer("czech", Stemmer::none, kCzechStopWords),
      of_stemmer("danish", Stemmer::danish, kDanishStopWords),
      of_stemmer("dutch", Stemmer::dutch, kDutchStopWords),
      with_possessive(of_stemmer("english", Stemmer::english, kEnglishStopWords)),
      of_stemmer("finnish", Stemmer::finnish, kFinnishStopWords),
      with_articles(of_stemmer("french", Stemmer::french, kFrenchStopWords), kFrenchArticles),
      of_stemmer("galician", Stemmer::none, kGalicianStopWords),
      of_stemmer("german", Stemmer::german, kGermanStopWords),
      with_folding(of_stemmer("greek", Stemmer::greek, kGreekStopWords), CaseFolding::greek),
      of_stemmer("hindi", Stemmer::hindi, kHindiStopWords),
      of_stemmer("hungarian", Stemmer::hungarian, kHungarianStopWords),
      of_stemmer("indonesian", Stemmer::indonesian, kIndonesianStopWords),
      with_folding(with_articles(of_stemmer("irish", Stemmer::irish, kIrishStopWords), kIrishArticles),
                   CaseFolding::irish),
      with_articles(of_stemmer("italian", Stemmer::italian, kItalianStopWords), kItalianArticles),
      of_rules("japanese", TokenizerRules::dictionary),
      of_stemmer("latvian", Stemmer::none, kLatvianStopWords),
      of_stemmer("norwegian", Stemmer::norwegian, kNorwegianStopWords),
      with_folding(of_stemmer("persian", Stemmer::none, kPersianStopWords), CaseFolding::persian),
      of_rules("polish", TokenizerRules::standard),
      of_stemmer("portuguese", Stemmer::portuguese, kPortugueseStopWords),
      of_stemmer("romanian", Stemmer::romanian, kRomanianStopWords),
      of_stemmer("russian", Stemmer::russian, kRussianStopWords),
      of_stemmer("spanish", Stemmer::spanish, kSpanishStopWords),
      of_stemmer("swedish", Stemmer::swedish, kSwedishStopWords),
      of_rules("thai", TokenizerRules::dictionary, kThaiStopWords),
      with_folding(of_stemmer("turkish", Stemmer::turkish, kTurkishStopWords), CaseFolding::turkish),
  };
  return all;
}

}  // namespace

const Language* find_language(std::string_view name) {
  const auto found = std::ranges::find(languages(), name, &Language::name);
  return found == languages().end() ? nullptr : &*found;
}

std::vector<std::string_view> language_names() {
  std::vector<std::string_view> names;
  std::ranges::transform(languages(), std::back_inserter(names), &Language::name);
  return names;
}

}  // namespace divan::text
