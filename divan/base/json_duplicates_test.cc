#include "divan/base/json_duplicates.h"

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <random>

#include "divan/base/json.h"

namespace divan::json {
namespace {

std::string unique(std::string_view text) { return without_duplicates(text).value_or("none"); }

TEST(JsonDuplicates, TheLastMemberOfANameIsKept) {
  EXPECT_EQ(unique(R"({"a":1,"b":2,"a":3})"), R"({"b":2,"a":3})");
  EXPECT_EQ(unique(R"({"a":1,"a":{"x":1,"x":[{"y":0,"y":1}]},"z":[]})"), R"({"a":{"x":[{"y":1}]},"z":[]})");
  EXPECT_EQ(unique(R"([1,{"a":"\"a\":","\u0061":2},"{"])"), R"([1,{"\u0061":2},"{"])");
  EXPECT_EQ(unique(R"({"":1,"":2})"), R"({"":2})");
}

TEST(JsonDuplicates, AReplacedMemberMayContainDuplicates) {
  EXPECT_EQ(unique(R"({"a":{"x":1,"x":2},"b":[{"y":1,"y":2}],"a":{"x":3,"x":4}})"),
            R"({"b":[{"y":2}],"a":{"x":4}})");
  EXPECT_EQ(unique(R"({"a":1,"a":{"a":1,"a":{"a":1,"a":2}},"a":{"a":3,"a":4}})"), R"({"a":{"a":4}})");
  EXPECT_EQ(unique(R"({"a":1,"a":2,"a":3,"\u0061":4,"b":5,"a":6,"b":7})"), R"({"a":6,"b":7})");
}

// One pass suffices for any depth: a pass for each depth would take minutes.
TEST(JsonDuplicates, DeepTexts) {
  constexpr int kDepth = 900;
  const std::string large(8'000'000, 'x');
  std::string text, expected;
  for (int i = 0; i < kDepth; ++i) {
    text += R"({"a":0,"a":)";
    expected += R"({"a":)";
  }
  const std::string end = '"' + large + '"' + std::string(kDepth, '}');
  EXPECT_EQ(unique(text + end), expected + end);
}

// Boost's parser keeps the last of several members of one name, too.
TEST(JsonDuplicates, RandomTextsMeanTheSameAsForBoost) {
  std::mt19937 random(1);
  const auto any = [&](int count) { return std::uniform_int_distribution<int>(0, count - 1)(random); };
  const std::function<std::string(int)> make = [&](int depth) -> std::string {
    if (depth == 0 || any(3) == 0) return any(2) == 0 ? std::to_string(any(100)) : R"("{\"a\":[,")";
    const bool is_object = any(3) > 0;
    std::string out = is_object ? "{" : "[";
    const int count = any(2) == 0 ? any(4) : any(14);
    for (int i = 0; i < count; ++i) {
      if (i > 0) out += ',';
      if (is_object) out += std::array{R"("a":)", R"("b":)", R"("\u0061":)", R"("\"":)", R"("":)"}[any(5)];
      out += make(depth - 1);
    }
    return out + (is_object ? '}' : ']');
  };
  int with_duplicates = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = make(4);
    ASSERT_EQ(compact(text), text);
    const auto without = without_duplicates(text);
    if (!without) continue;
    ++with_duplicates;
    ASSERT_EQ(parse(*without), parse(text)) << text;
    ASSERT_EQ(without_duplicates(*without), std::nullopt) << text;
  }
  EXPECT_GT(with_duplicates, 500);
}

TEST(JsonDuplicates, TextsWithoutAnyAreLeftAlone) {
  for (const std::string_view text : {R"({})", R"("a")", R"({"a":{"a":{"a":[{"a":1},{"a":1}]}},"b":"a"})",
                                      R"(["a","a"])", R"({"a":"b:\"a\":1"})"})
    EXPECT_EQ(without_duplicates(text), std::nullopt) << text;
}

TEST(JsonDuplicates, ObjectsOfManyMembers) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i) text += "\"m" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  EXPECT_EQ(without_duplicates(text + "\"n\":1}"), std::nullopt);
  const std::string last = unique(text + "\"m7\":true}");
  EXPECT_EQ(member(last, "m7"), "true");
  EXPECT_EQ(last.find("\"m7\""), last.rfind("\"m7\""));
}

}  // namespace
}  // namespace divan::json
