#include "divan/text/tokenizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "divan/text/characters.h"
#include "divan/text/dictionary_words.h"

namespace divan::text {
namespace {

using ::testing::ElementsAre;

// "word|word|..."
std::string words_of(TokenizerRules rules, std::string_view text) {
  std::string result;
  const auto tokenizer = make_tokenizer(rules, text);
  for (Word word; tokenizer->next(word);) {
    if (!result.empty()) result += '|';
    result += text.substr(word.begin, word.end - word.begin);
  }
  return result;
}

std::vector<std::uint32_t> positions_of(TokenizerRules rules, std::string_view text) {
  std::vector<std::uint32_t> positions;
  const auto tokenizer = make_tokenizer(rules, text);
  for (Word word; tokenizer->next(word);) positions.push_back(word.position);
  return positions;
}

// From Unicode's WordBreakTest.txt, version 15.0, one or more for each rule: the parts there that are words.
TEST(TokenizersTest, WordBreaksAreThoseOfUnicode) {
  const auto words = [](std::string_view text) { return words_of(TokenizerRules::standard, text); };
  EXPECT_EQ(words("a\r\nb"), "a|b");                     // WB3
  EXPECT_EQ(words("a\u0308b\u00AD"), "a\u0308b\u00AD");  // WB4
  EXPECT_EQ(words("A\n\u0308A"), "A|A");                 // WB3a
  EXPECT_EQ(words("A\u0308:A"), "A\u0308:A");            // WB6, WB7
  EXPECT_EQ(words("A:\u0308A"), "A:\u0308A");            // WB4, WB6
  EXPECT_EQ(words("a::a"), "a|a");
  EXPECT_EQ(words("a.:a"), "a|a");
  EXPECT_EQ(words("a:1"), "a|1");
  EXPECT_EQ(words("\u05D0'"), "\u05D0'");                // WB7a
  EXPECT_EQ(words("\u05D0\"\u05D0"), "\u05D0\"\u05D0");  // WB7b, WB7c
  EXPECT_EQ(words("\u05D0\"a"), "\u05D0|a");
  EXPECT_EQ(words("A\u0030A"), "A0A");  // WB9, WB10
  EXPECT_EQ(words("1,1"), "1,1");       // WB11, WB12
  EXPECT_EQ(words("1'1"), "1'1");
  EXPECT_EQ(words("1.1"), "1.1");
  EXPECT_EQ(words("1:1"), "1|1");
  EXPECT_EQ(words("1,a"), "1|a");
  EXPECT_EQ(words("1_a,.1"), "1_a|1");
  EXPECT_EQ(words("1_1,,a"), "1_1|a");
  EXPECT_EQ(words("a,a"), "a|a");
  EXPECT_EQ(words("\u3031\u3031a"), "\u3031\u3031|a");  // WB13
  EXPECT_EQ(words("A__A"), "A__A");                     // WB13a, WB13b
  EXPECT_EQ(words("A_0_\u3031_"), "A_0_\u3031_");
  EXPECT_EQ(words("can't x.y a_b _ __"), "can't|x.y|a_b");
  EXPECT_EQ(words("\U0001F476\U0001F3FF a\u200Db"), "a\u200Db");  // WB4
}

TEST(TokenizersTest, WordsOfOtherScriptsAreThoseOfLucene) {
  const auto words = [](std::string_view text) { return words_of(TokenizerRules::standard, text); };
  EXPECT_EQ(words("漢字かなカナ한국"), "漢|字|か|な|カナ|한국");
  EXPECT_EQ(words("ภาษาไทยabc"), "ภาษาไทย|abc");
  EXPECT_EQ(words_of(TokenizerRules::bigrams, "漢字か x カナ字"), "漢字|字か|x|カナ|ナ字");
  EXPECT_EQ(words_of(TokenizerRules::bigrams, "漢 字"), "漢|字");
  EXPECT_EQ(words_of(TokenizerRules::classic, "漢字abcカ"), "漢|字|abc|カ");
}

TEST(TokenizersTest, DomainsMayEndWithTheDotOfTheRoot) {
  EXPECT_EQ(words_of(TokenizerRules::email, "foo-bar.com. x"), "foo-bar.com.|x");
  EXPECT_EQ(words_of(TokenizerRules::email, "a-b.command x-y.html"), "a|b.command|x|y.html");
}

TEST(TokenizersTest, LongWordsAreDroppedButCounted) {
  const std::string longest(kMaxWordUnits, 'a');
  for (const auto rules : {TokenizerRules::standard, TokenizerRules::classic, TokenizerRules::email,
                           TokenizerRules::bigrams, TokenizerRules::dictionary}) {
    EXPECT_EQ(words_of(rules, longest + " b"), longest + "|b");
    EXPECT_EQ(words_of(rules, "x " + longest + "a b"), "x|b");
    EXPECT_THAT(positions_of(TokenizerRules::standard, "x " + longest + "a b"), ElementsAre(0u, 2u));
  }
  for (const auto rules : {TokenizerRules::letter, TokenizerRules::whitespace})
    EXPECT_EQ(words_of(rules, longest + "b c"), longest + "|b|c");
  EXPECT_EQ(words_of(TokenizerRules::keyword, longest + "b"), longest + "b");
}

// Counted are UTF-16 code units, as in Java.
TEST(TokenizersTest, LengthsAreInUtf16) {
  std::string bold;
  for (std::size_t i = 0; i < kMaxWordUnits / 2; ++i) bold += "\U0001D400";
  EXPECT_EQ(words_of(TokenizerRules::standard, bold + "a"), bold + "a");
  EXPECT_EQ(words_of(TokenizerRules::standard, bold + "ab"), "");
  std::string accented;
  for (std::size_t i = 0; i < kMaxWordUnits; ++i) accented += "é";
  EXPECT_EQ(words_of(TokenizerRules::standard, accented), accented);
}

TEST(TokenizersTest, TextsWithoutSpacesAreDividedIntoPieces) {
  std::string text;
  while (text.size() < 5 * DictionaryWords::kMaxRunBytes) text += "ภาษาไทย";
  std::size_t end = 0;
  const auto tokenizer = make_tokenizer(TokenizerRules::dictionary, text);
  for (Word word; tokenizer->next(word); end = word.end) {
    ASSERT_EQ(word.begin, end);
    ASSERT_LT(word.end - word.begin, 30u);
  }
  EXPECT_EQ(end, text.size());
  // The places of words after a run.
  EXPECT_EQ(words_of(TokenizerRules::dictionary, "ภาษาไทย x ภาษาไทย, 北京大学y"),
            "ภาษา|ไทย|x|ภาษา|ไทย|北京|大学|y");
}

// A word that is found from the middle of a text is the same as at its start.
TEST(TokenizersTest, WordsDoNotDependOnWhatIsBeforeThem) {
  const std::string text =
      "can't john.doe@example.com 3.14 漢字カナ ภาษาไทย a_b http://x.org/y?z U.S.A. x-1/b\u0301 한국";
  for (const auto rules :
       {TokenizerRules::whitespace, TokenizerRules::letter, TokenizerRules::standard, TokenizerRules::classic,
        TokenizerRules::email, TokenizerRules::bigrams, TokenizerRules::dictionary}) {
    std::string words;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find(' ', begin), text.size());
      const auto part = words_of(rules, text.substr(begin, end - begin));
      if (!words.empty() && !part.empty()) words += '|';
      words += part;
      begin = end + 1;
    }
    EXPECT_EQ(words_of(rules, text), words);
  }
}

}  // namespace
}  // namespace divan::text
