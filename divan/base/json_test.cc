#include "divan/base/json.h"

#include <gtest/gtest.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::json {
namespace {

bool accepts(std::string_view text) {
  try {
    EXPECT_TRUE(is_compact(compact(text))) << text;
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), 400);
    EXPECT_EQ(e.name(), "bad_request");
    EXPECT_EQ(e.reason().rfind("invalid UTF-8 JSON", 0), 0u) << e.reason();
    EXPECT_TRUE(is_utf8(e.reason())) << e.reason();
    return false;
  }
}

TEST(Json, CompactRemovesWhiteSpaceOnly) {
  EXPECT_EQ(
      compact(
          " { \"b\" : [ 1 , 2.50 , 1e308 , 123456789012345678901234567890 ] ,\n\"a\" : \"x  y\\u0041\" } "),
      R"({"b":[1,2.50,1e308,123456789012345678901234567890],"a":"x  y\u0041"})");
  EXPECT_EQ(compact(R"({"a":1,"a":2})"), R"({"a":1,"a":2})");
  EXPECT_EQ(compact(" 12 "), "12");
  EXPECT_EQ(compact("\"x\""), "\"x\"");
  EXPECT_EQ(compact(" null"), "null");
  EXPECT_EQ(compact("[]"), "[]");
  EXPECT_EQ(compact("{}"), "{}");
}

// The reason contains a part of the text.
TEST(Json, ReasonsAreUtf8WhereverTheTextIsCut) {
  for (int ahead = 0; ahead < 4; ++ahead) {
    EXPECT_FALSE(accepts("1" + std::string(36 + ahead, 'x') + "\xf0\x9f\x9b\x8b\xd0\xb1"));
  }
}

TEST(Json, RejectsInvalidJson) {
  for (const std::string_view text : {"",
                                      " ",
                                      "{",
                                      "}",
                                      "[",
                                      "[1",
                                      "[1,",
                                      "[1,]",
                                      "[,1]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "{a:1}",
                                      "{'a':1}",
                                      "01",
                                      "-",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "+1",
                                      "0x10",
                                      "NaN",
                                      "Infinity",
                                      "nul",
                                      "nulll",
                                      "tru",
                                      "truee",
                                      "falsy",
                                      "[nul]",
                                      "[nulll]",
                                      "[truee]",
                                      "[01]",
                                      "[1.]",
                                      "[-]",
                                      "[1 2]",
                                      "\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\ud800\"",
                                      "[\"\\ud800x\"]",
                                      "{\"\\x\":1}",
                                      "1 2",
                                      "{} {}",
                                      "[] x",
                                      "\"a\" \"b\"",
                                      "null null",
                                      "[1]]",
                                      "{}}",
                                      "\"\n\"",
                                      "[\"\t\"]",
                                      "[1}",
                                      "{\"a\":1]",
                                      "/* c */ 1",
                                      "[1]//"}) {
    EXPECT_FALSE(accepts(text)) << text;
    EXPECT_EQ(is_compact(text), text.find("ud800") != std::string_view::npos) << text;
  }
  EXPECT_FALSE(accepts("\"\xff\""));
  EXPECT_FALSE(accepts("[\"\xc0\xaf\"]"));
  EXPECT_FALSE(accepts("[\"\xed\xa0\x80\"]"));
  EXPECT_FALSE(accepts(std::string_view("\0", 1)));
  EXPECT_FALSE(accepts(std::string_view("[1]\0", 4)));
}

TEST(Json, UnescapeReplacesHalvesOfSurrogatePairs) {
  EXPECT_EQ(unescape(R"(a\u00fc\ud83d\ude00b)"), "aü😀b");
  EXPECT_EQ(unescape(R"(a\ud83db)"), "a�b");
  EXPECT_EQ(unescape(R"(a\ude00b)"), "a�b");
  EXPECT_EQ(unescape(R"(\ud83d)"), "�");
  EXPECT_EQ(unescape(R"(\ud83d\u0041\ud83d\n)"), "�A�\n");
  EXPECT_EQ(unescape(R"(\ud83d\ud83d\ude00)"), "�😀");
}

TEST(Json, IsCompact) {
  for (const std::string_view text :
       {R"({"a":[1,{},[],{"b":{"c":null}},-2.5E+7],"":"\u0041\\\"/ü"})", "true", "[[],[[]]]", R"("")"})
    EXPECT_TRUE(is_compact(text)) << text;
  for (const std::string_view text : {" 1", "1 ", "[1, 2]", R"({"a": 1})", "[ ]", "{\"a\" :1}", "\"\xff\"",
                                      R"({"a":1,2})", "[1,,2]", "[\"a\":1]", "{,}", "\"\\u00g0\"", "1]", "]"})
    EXPECT_FALSE(is_compact(text)) << text;
  EXPECT_TRUE(is_compact(std::string(200'000, '[') + std::string(200'000, ']')));
  EXPECT_FALSE(is_compact(std::string(200'000, '[')));
}

TEST(Json, DepthHasALimitAndAClearError) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(accepts(nested(kMaxDepth)));
  EXPECT_FALSE(accepts(nested(kMaxDepth + 1)));
  EXPECT_FALSE(accepts(nested(200'000)));
  const std::string digits(400, '9');
  for (const std::string& number : {std::string("1e308"), std::string("-1.7e308"), std::string("1e-400"),
                                    std::string("0e999"), digits, digits + "e-100", "0." + digits + "e+300"})
    EXPECT_TRUE(accepts("[" + number + "]")) << number;
  for (const std::string& number :
       {std::string("1e400"), std::string("-2E+308"), digits + "e1", digits + ".0e0"})
    EXPECT_FALSE(accepts("[" + number + "]")) << number;
  EXPECT_FALSE(accepts(std::string(200'000, '[')));
  std::string objects;
  for (int i = 0; i < 5000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(accepts(objects));
}

TEST(Json, WalksOverMembersAndElements) {
  const std::string text =
      compact(R"({"a": {"x": ["]", "}"]}, "b\"": [1, {"c": "\\"}, "\"]"], "n": -1.5e3})");
  std::vector<std::string> seen;
  EXPECT_TRUE(for_each_member(text, [&](std::string_view name, std::string_view value) {
    seen.push_back(unescape(name) + "=" + std::string(value));
    return true;
  }));
  EXPECT_EQ(seen,
            (std::vector<std::string>{R"(a={"x":["]","}"]})", R"(b"=[1,{"c":"\\"},"\"]"])", "n=-1.5e3"}));
  std::vector<std::string> elements;
  EXPECT_TRUE(for_each_element(*member(text, "b\\\""), [&](std::string_view value) {
    elements.emplace_back(value);
    return true;
  }));
  EXPECT_EQ(elements, (std::vector<std::string>{"1", R"({"c":"\\"})", R"("\"]")"}));
  EXPECT_FALSE(for_each_member("[1]", [](auto, auto) { return true; }));
  EXPECT_FALSE(for_each_element("{}", [](auto) { return true; }));
  EXPECT_EQ(member(R"({"a":1,"a":2})", "a"), "2");
  EXPECT_FALSE(member(text, "missing"));
}

TEST(Json, WalksOverDamagedTextStayWithinIt) {
  const std::string text = R"({"a":{"x":["]","\u00e9"]},"b":[1,{"c":"\"}],"n":-1.5})";
  std::size_t seen = 0;
  const std::function<void(std::string_view)> walk = [&](std::string_view value) {
    ++seen;
    for_each_member(value, [&](std::string_view name, std::string_view member) {
      unescape(name);
      walk(member);
      return true;
    });
    for_each_element(value, [&](std::string_view element) {
      walk(element);
      return true;
    });
    string_value(value);
  };
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string cut = text.substr(0, size);  // a copy, so that a sanitizer detects reads beyond its end
    walk(cut);
    for (const char wrong : {'"', '{', ']', '\\', '\0'}) {
      std::string damaged = cut;
      if (size > 0) damaged[size - 1] = wrong;
      walk(damaged);
      damaged = text;
      if (size > 0) damaged[size - 1] = wrong;
      walk(damaged);
    }
  }
  EXPECT_GT(seen, 1000u);
}

TEST(Json, StringsRoundTrip) {
  for (const std::string& text :
       {std::string("plain"), std::string("quote \" backslash \\ slash /"), std::string("\b\f\n\r\t\x01\x1f"),
        std::string("zero \0 inside", 13), std::string("gr\xc3\xbc\xc3\x9f \xf0\x9f\x9b\x8b")}) {
    EXPECT_EQ(string_value(compact(json::quoted(text))), text);
  }
  EXPECT_EQ(string_value(R"("\ud83d\udecb\u00fc\/")"), "\xf0\x9f\x9b\x8b\xc3\xbc/");
  EXPECT_FALSE(string_value("12"));
}

TEST(Json, Numbers) {
  EXPECT_EQ(int_value("-42"), -42);
  EXPECT_FALSE(int_value("1.0"));
  EXPECT_FALSE(int_value("99999999999999999999"));
  std::string out;
  append_double(out, 0.1);
  out += ' ';
  append_double(out, 1e300 * 1e300);
  EXPECT_EQ(out, "0.1 null");
}

TEST(Json, WriterInsertsTheCommas) {
  std::string out;
  Writer(out)
      .begin_object()
      .key("a")
      .begin_array()
      .number(1)
      .string("x")
      .begin_object()
      .end_object()
      .null()
      .end_array()
      .key("b")
      .boolean(true)
      .key("c")
      .raw("[0]")
      .end_object();
  EXPECT_EQ(out, R"({"a":[1,"x",{},null],"b":true,"c":[0]})");
}

}  // namespace
}  // namespace divan::json
