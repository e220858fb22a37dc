#include "divan/base/json_duplicates.h"

#include <gmock/gmock.h>

#include "divan/base/json.h"

namespace divan::json {
namespace {

std::string unique(std::string_view text) { return without_duplicates(text).value_or("none"); }

TEST(JsonDuplicates, TheLastMemberOfANameStands) {
  EXPECT_EQ(unique(R"({"a":1,"b":2,"a":3})"), R"({"b":2,"a":3})");
  EXPECT_EQ(unique(R"({"a":1,"a":{"x":1,"x":[{"y":0,"y":1}]},"z":[]})"), R"({"a":{"x":[{"y":1}]},"z":[]})");
  EXPECT_EQ(unique(R"([1,{"a":"\"a\":","\u0061":2},"{"])"), R"([1,{"\u0061":2},"{"])");
  EXPECT_EQ(unique(R"({"":1,"":2})"), R"({"":2})");
}

TEST(JsonDuplicates, WhatIsReplacedMayHaveDuplicatesItself) {
  EXPECT_EQ(unique(R"({"a":{"x":1,"x":2},"b":[{"y":1,"y":2}],"a":{"x":3,"x":4}})"),
            R"({"b":[{"y":2}],"a":{"x":4}})");
  EXPECT_EQ(unique(R"({"a":1,"a":{"a":1,"a":{"a":1,"a":2}},"a":{"a":3,"a":4}})"), R"({"a":{"a":4}})");
  EXPECT_EQ(unique(R"({"a":1,"a":2,"a":3,"\u0061":4,"b":5,"a":6,"b":7})"), R"({"a":6,"b":7})");
}

// One walk does, however deep the text is: walks for each depth would take minutes.
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
