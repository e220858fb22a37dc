#include "divan/app/pretty_json.h"

#include <gtest/gtest.h>

#include "divan/base/json.h"

namespace divan::app {
namespace {

TEST(PrettyJson, EachMemberAndElementHasALine) {
  EXPECT_EQ(pretty_json(R"({"a":1,"b":[true,{"c":null}]})"),
            "{\n"
            "  \"a\": 1,\n"
            "  \"b\": [\n"
            "    true,\n"
            "    {\n"
            "      \"c\": null\n"
            "    }\n"
            "  ]\n"
            "}");
}

TEST(PrettyJson, EmptyAndSimpleValuesStayOnOneLine) {
  for (const auto* text : {"{}", "[]", "1", "\"a\"", "null", "\"\""}) EXPECT_EQ(pretty_json(text), text);
  EXPECT_EQ(pretty_json(R"([{},[]])"), "[\n  {},\n  []\n]");
}

TEST(PrettyJson, StringsAndNumbersAreUnchanged) {
  EXPECT_EQ(pretty_json(R"("a{[,:]}\"{,\\")"), R"("a{[,:]}\"{,\\")");
  EXPECT_EQ(pretty_json("1.000000000000000000001e999"), "1.000000000000000000001e999");
  const std::string text = R"({"a, \"b\": [":[1.0,2e5],"c\\":"d"})";
  EXPECT_EQ(json::compact(pretty_json(text)), text);
}

TEST(PrettyJson, TerminalControlsAreEscaped) {
  EXPECT_EQ(pretty_json("\"\u009b2J\x7f\""), R"("\u009b2J\u007f")");
}

}  // namespace
}  // namespace divan::app
