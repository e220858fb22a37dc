#include "divan/text/analyzer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "divan/base/bytes.h"
#include "divan/base/error_testing.h"

namespace divan::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Token> tokens_of(const Analyzer& analyzer, std::string_view text) {
  std::vector<Token> tokens;
  analyzer.analyze(text, [&](const Token& token) { tokens.push_back(token); });
  return tokens;
}

// "term@position term@position ..."
std::string summary(const Analyzer& analyzer, std::string_view text) {
  std::string result;
  for (const auto& token : tokens_of(analyzer, text)) {
    if (!result.empty()) result += ' ';
    result += token.term + '@' + std::to_string(token.position);
  }
  return result;
}

std::string analyzed(const std::string& analyzer, std::string_view text) {
  return summary(*make_analyzer(analyzer.starts_with('{') ? analyzer : '"' + analyzer + '"'), text);
}

struct Golden {
  const char* analyzer;
  const char* text;
  const char* tokens;
};

constexpr const char* kMixed =
    R"(The U.S.A.'s O'Reilly & AT&T can't pay 3.14 € to john.doe@example.com, see http://www.example.com:8080/a?b=c_d. 東京へ行くﾃｽﾄ naïve Straße 192.168.0.1 _ x_y wi-fi 漢字カタカナ)";

// The tokens are those of Lucene 4.10 in its mode 4.6.
constexpr Golden kGolden[] = {
    {"standard", kMixed,
     R"(u.s.a@1 s@2 o'reilly@3 t@5 can't@6 pay@7 3.14@8 john.doe@10 example.com@11 see@12 http@13 www.example.com@14 8080@15 b@17 c_d@18 東@19 京@20 へ@21 行@22 く@23 ﾃｽﾄ@24 naïve@25 straße@26 192.168.0.1@27 x_y@28 wi@29 fi@30 漢@31 字@32 カタカナ@33)"},
    {"classic", kMixed,
     R"(usa@1 s@2 o'reilly@3 at&t@4 can't@5 pay@6 3.14@7 john.doe@example.com@9 see@10 http@11 www.example.com@12 8080/a@13 b@14 c@15 d@16 東@17 京@18 へ@19 行@20 く@21 ﾃ@22 ｽ@23 ﾄ@24 naïve@25 straße@26 192.168.0.1@27 x@28 y@29 wi@30 fi@31 漢@32 字@33 カ@34 タ@35 カ@36 ナ@37)"},
    {"email", kMixed,
     R"(u.s.a@1 s@2 o'reilly@3 t@5 can't@6 pay@7 3.14@8 john.doe@example.com@10 see@11 http://www.example.com:8080/a?b=c_d.@12 東@13 京@14 へ@15 行@16 く@17 ﾃｽﾄ@18 naïve@19 straße@20 192.168.0.1@21 x_y@22 wi@23 fi@24 漢@25 字@26 カタカナ@27)"},
    {"simple", kMixed,
     R"(the@0 u@1 s@2 a@3 s@4 o@5 reilly@6 at@7 t@8 can@9 t@10 pay@11 to@12 john@13 doe@14 example@15 com@16 see@17 http@18 www@19 example@20 com@21 a@22 b@23 c@24 d@25 東京へ行くﾃｽﾄ@26 naïve@27 straße@28 x@29 y@30 wi@31 fi@32 漢字カタカナ@33)"},
    {"whitespace", kMixed,
     R"(The@0 U.S.A.'s@1 O'Reilly@2 &@3 AT&T@4 can't@5 pay@6 3.14@7 €@8 to@9 john.doe@example.com,@10 see@11 http://www.example.com:8080/a?b=c_d.@12 東京へ行くﾃｽﾄ@13 naïve@14 Straße@15 192.168.0.1@16 _@17 x_y@18 wi-fi@19 漢字カタカナ@20)"},
    {"keyword", kMixed,
     R"(The U.S.A.'s O'Reilly & AT&T can't pay 3.14 € to john.doe@example.com, see http://www.example.com:8080/a?b=c_d. 東京へ行くﾃｽﾄ naïve Straße 192.168.0.1 _ x_y wi-fi 漢字カタカナ@0)"},
    {"email",
     R"(Mail jane_doe+x@mail.example.co.uk or a,b@c.de: example.org/path, user@[1.2.3.4], ftp://x.de/f;type=a foo.html?x=1 https://u:p@host/x user@localhost)",
     R"(mail@0 jane_doe+x@mail.example.co.uk@1 a,b@c.de@3 example.org/path@4 user@[1.2.3.4]@5 ftp://x.de/f;type=a@6 foo.html@7 x@8 1@9 https://u:p@host/x@10 user@11 localhost@12)"},
    {"classic", R"(I.B.M. e.g. foo.bar. xl-5000/b 12-ab-34 a-b ไทย don't O'Neil's)",
     R"(ibm@0 eg@1 foo.bar@2 xl-5000/b@3 12-ab-34@4 b@6 ไทย@7 don't@8 o'neil@9)"},
    {"english",
     R"(The children's toys were possibly running; analogies, methodology and biology's theories relied on the flies’ size)",
     R"(children@1 toi@2 were@3 possibl@4 run@5 analog@6 methodolog@7 biologi@9 theori@10 reli@11 fli@14 size@15)"},
    {"cjk", R"(東京都に住んで ﾃｽﾄ ＡＢＣ the 한국어 字 word)",
     R"(東京@0 京都@1 都に@2 に住@3 住ん@4 んで@5 テス@6 スト@7 abc@8 한국@10 국어@11 字@12 word@13)"},
    {"arabic", R"(كتاب المدرسة الجميلة في البيت)", R"(كتاب@0 مدرس@1 جميل@2 بيت@4)"},
    {"armenian", R"(Հայաստանի մարդիկ են լեռներում)", R"(հայաստ@0 մարդ@1 լեռներ@3)"},
    {"basque", R"(Etxeko mutilak eta neskak ez datoz)", R"(etxeko@0 mutil@1 nesk@3 dato@5)"},
    {"catalan", R"(L'home d'aquell país i les dones)", R"(hom@0 pais@2 don@5)"},
    {"danish", R"(Børnene leger i de store haver)", R"(børn@0 leg@1 stor@4 hav@5)"},
    {"dutch", R"(De kinderen speelden in de tuinen)", R"(kinder@1 speeld@2 tuin@5)"},
    {"finnish", R"(Suomen kielessä on monia taloja)", R"(suome@0 kiele@1 mon@3 talo@4)"},
    {"greek", R"(Οι άνθρωποι της Ελλάδας είναι ΦΙΛΟΞΕΝΟΙ)", R"(ανθρωπ@1 ελλαδ@3 φιλοξεν@5)"},
    {"indonesian", R"(Mereka membaca buku-buku di perpustakaan)", R"(baca@1 buku@2 buku@3 pustaka@5)"},
    {"irish", R"(An tAthair agus na nAithreacha d'fhág an teach)", R"(athair@1 aithreacha@4 fág@5 teach@7)"},
    {"norwegian", R"(Barna leker i de store hagene)", R"(barn@0 lek@1 stor@4 hag@5)"},
    {"romanian", R"(Copiii se jucau în grădinile frumoase)", R"(copii@0 jucau@2 grădin@4 frumoas@5)"},
    {"russian", R"(Российские ученые открыли новые законы природы и)",
     R"(российск@0 учен@1 откр@2 нов@3 закон@4 природ@5)"},
    {"swedish", R"(Barnen leker i de stora trädgårdarna)", R"(barn@0 lek@1 stor@4 trädgård@5)"},
    {"turkish", R"(İstanbul'da ISPARTA güzel evlerinden ve geliyorum)",
     R"(istanbul'@0 ıspar@1 güzel@2 ev@3 geliyor@5)"},
    {"hungarian", R"(A könyvek és a házakban)", R"(könyv@1 ház@4)"},
    {"portuguese", R"(Os meninos não estavam)", R"(menin@1)"},
};

TEST(AnalyzerTest, TokensAreThoseOfLucene) {
  for (const auto& [analyzer, text, tokens] : kGolden) {
    EXPECT_EQ(analyzed(analyzer, text), tokens) << analyzer << ": " << text;
  }
}

TEST(AnalyzerTest, StemsAndWordsWhereLuceneHasOtherOnes) {
  EXPECT_EQ(analyzed("french", "L'avion de l'État n'est pas aujourd'hui à l'école"),
            "avion@0 état@2 aujourd'hui@5 écol@7");
  EXPECT_EQ(analyzed("german", "Der Fußballspieler läuft über die Straße"),
            "fussballspiel@1 lauft@2 strass@5");
  EXPECT_EQ(analyzed("italian", "All'isola dell'amore"), "isol@0 amor@1");
  EXPECT_EQ(analyzed("spanish", "El niño comía las manzanas"), "niñ@1 com@2 manzan@4");
  EXPECT_EQ(analyzed("hindi", "किताबें"), "किताब@0");
  EXPECT_EQ(analyzed("persian", "كتاب‌های فارسی"), "كتابهاي@0 فارسي@1");
  EXPECT_EQ(analyzed("brazilian", "As meninas"), "menin@1");
  EXPECT_EQ(analyzed("bulgarian", "аз и книгата"), "книгата@2");
  EXPECT_EQ(analyzed("czech", "Kůň a pes"), "kůň@0 pes@2");
  EXPECT_EQ(analyzed("galician", "O gato e o can"), "gato@1 can@4");
  EXPECT_EQ(analyzed("latvian", "Vārdi un valoda"), "vārdi@0 valoda@2");
  EXPECT_EQ(analyzed("polish", "Zażółć gęślą jaźń"), "zażółć@0 gęślą@1 jaźń@2");
}

TEST(AnalyzerTest, DictionariesDivideTextWithoutSpaces) {
  EXPECT_EQ(analyzed("thai", "ภาษาไทยเป็นภาษา ABC"), "ภาษา@0 ไทย@1 ภาษา@3 abc@4");
  EXPECT_EQ(analyzed("chinese", "北京大学的学生。"), "北京@0 大学@1 的@2 学生@3");
  EXPECT_EQ(analyzed("japanese", "東京に住む word"), "東京@0 に@1 住む@2 word@3");
}

TEST(AnalyzerTest, AccentsOfLatinLettersAreFolded) {
  EXPECT_EQ(analyzed("simple_asciifolding", "Ærø Straße Łódź naïve Привет Ελλάδα"),
            "aero@0 strasse@1 lodz@2 naive@3 привет@4 ελλάδα@5");
}

TEST(AnalyzerTest, OtherLettersAreKept) {
  EXPECT_EQ(analyzed("simple_asciifolding", "ẚ й"), "ẚ@0 й@1");
  EXPECT_EQ(analyzed("cjk", "\U00010400Ａ"), "\U00010428a@0");
}

// Lucene's changes of Porter's algorithm, and the cache of stems, which languages share.
TEST(AnalyzerTest, StemsAreThoseOfTheLanguage) {
  EXPECT_EQ(analyzed("english", "archaeologie archaeology és running"),
            "archaeologi@0 archaeolog@1 és@2 run@3");
  EXPECT_EQ(analyzed("german", "running"), "running@0");
  EXPECT_EQ(analyzed("english", "running"), "run@0");
}

TEST(AnalyzerTest, OffsetsAreThoseOfTheWordsInBytes) {
  const auto tokens = tokens_of(*make_analyzer(R"("english")"), "é The dogs’ Dog's");
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_THAT((std::vector<std::size_t>{tokens[0].begin, tokens[0].end}), ElementsAre(0u, 2u));
  EXPECT_THAT((std::vector<std::size_t>{tokens[1].begin, tokens[1].end}), ElementsAre(7u, 11u));
  EXPECT_THAT((std::vector<std::size_t>{tokens[2].begin, tokens[2].end}), ElementsAre(15u, 20u));
  EXPECT_EQ(tokens[2].term, "dog");
}

TEST(AnalyzerTest, StopWordsCanBeReplaced) {
  const char* const definition = R"({"name":"standard","stopwords":["dog","été"]})";
  EXPECT_EQ(analyzed(definition, "The Dog ÉTÉ and cat"), "the@0 and@3 cat@4");
  EXPECT_EQ(analyzed(R"({"name":"standard","stopwords":[]})", "the and"), "the@0 and@1");
  EXPECT_EQ(analyzed(R"({"name":"english"})", "the cats"), "cat@1");
  EXPECT_EQ(analyzed(R"({"name":"simple","stopwords":["dog"]})", "dog"), "dog@0");
}

TEST(AnalyzerTest, FieldsHaveTheirAnalyzers) {
  const auto analyzer = make_analyzer(
      R"({"name":"perfield","default":"english","fields":{"raw":"keyword","n":{"name":"standard","stopwords":["x"]}}})");
  EXPECT_EQ(summary(analyzer->analyzer_for("other"), "The Cats"), "cat@1");
  EXPECT_EQ(summary(analyzer->analyzer_for("raw"), "The Cats"), "The Cats@0");
  EXPECT_EQ(summary(analyzer->analyzer_for("n"), "x Cats"), "cats@1");
  EXPECT_EQ(summary(*analyzer, "The Cats"), "cat@1");
  EXPECT_EQ(summary(analyzer->analyzer_for("_id"), "The Cats"), "The Cats@0");
  const auto simple = make_analyzer(R"("simple")");
  EXPECT_EQ(summary(simple->analyzer_for("_partition"), "The Cats"), "The Cats@0");
  EXPECT_EQ(&simple->analyzer_for("x"), simple.get());
  EXPECT_EQ(summary(*make_analyzer(R"({"name":"perfield","fields":{"default":"keyword"}})"), "A B"), "A B@0");
  EXPECT_EQ(analyzed("perfield", "The Cats"), "cats@1");
}

TEST(AnalyzerTest, InvalidDefinitionsAreRefused) {
  const auto error = [](std::string_view json) { return error_of([&] { make_analyzer(json); }); };
  EXPECT_THAT(error(R"("klingon")"),
              HasSubstr("bad_request: Unknown analyzer `klingon`; expected one of keyword, "));
  EXPECT_THAT(error(R"({"name":"perfield","fields":{"a":"klingon"}})"), HasSubstr("klingon"));
  EXPECT_THAT(error(R"({"name":"perfield","default":{"name":"perfield"}})"),
              HasSubstr("cannot be that of a field"));
  EXPECT_THAT(error(R"({"name":"perfield","fields":[]})"), HasSubstr("must be an object"));
  EXPECT_THAT(error(R"({"name":"standard","stopwords":"a"})"), HasSubstr("array of strings"));
  EXPECT_THAT(error(R"({"name":"standard","stopwords":[1]})"), HasSubstr("array of strings"));
  EXPECT_THAT(error(R"({"stopwords":[]})"), HasSubstr("`name`"));
  EXPECT_THAT(error("1"), HasSubstr("must be a string or an object"));
  EXPECT_THAT(error("{"), HasSubstr("bad_request"));
}

// Texts of which a tokenizer that looks far ahead would read each part many times.
TEST(AnalyzerTest, HostileTextIsAnalyzedInLinearTime) {
  constexpr std::size_t kBytes = 256 << 10;
  constexpr double kMaxSeconds = 2;  // of CPU; a thousandth is normal
  for (const std::string_view part :
       {"a-",       "a_", "a.", "a@", "a.b-", "a%b&",     "\"\\",     "http://", "http://a:", "a@b@[1",
        "\xCC\x81", "ก",  "中", "カ", "한",   "\xE4\xB8", "\xF0\x9F", "\xFF",    "a",         "1,"}) {
    std::string text = "x";
    while (text.size() < kBytes) text += part;
    for (const std::string name :
         {"simple", "classic", "standard", "email", "cjk", "thai", "english", "turkish"}) {
      const auto analyzer = make_analyzer('"' + name + '"');
      const auto begin = std::clock();
      std::size_t end = 0;
      bool is_valid = true;
      analyzer->analyze(text, [&](const Token& token) {
        is_valid &= token.begin < token.end && token.end >= end && is_utf8(token.term);
        end = token.end;
      });
      EXPECT_TRUE(is_valid && end <= text.size()) << name << " " << part;
      EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kMaxSeconds)
          << name << " " << part;
    }
  }
}

TEST(AnalyzerTest, MalformedTextIsReplaced) {
  EXPECT_EQ(analyzed("keyword", "a\xFF\xE4\xB8z"), "a\uFFFD\uFFFDz@0");
  EXPECT_EQ(analyzed("whitespace", "a\xFF b"), "a\uFFFD@0 b@1");
  EXPECT_EQ(analyzed("standard",
                     "cat\xFF"
                     "dog\xF0\x9F"),
            "cat@0 dog@1");
  EXPECT_EQ(analyzed("keyword", ""), "@0");
  EXPECT_EQ(analyzed("standard", ""), "");
}

}  // namespace
}  // namespace divan::text
