#include "divan/index/triggers/template.h"

#include <gmock/gmock.h>

#include "divan/base/error_testing.h"
#include "divan/base/json.h"

namespace divan::index::triggers {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kDocument =
    R"({"_id":"a","n":1.50,"s":"x\"\u00fc\n","yes":true,"no":null,"list":[1,{"b":"c"}],"o":{"p":{"q":2}}})";

std::string fill(std::string_view json) { return Template::parse(json::compact(json)).fill(kDocument, 1000); }

TEST(TriggerTemplate, APlaceholderAloneIsTheValue) {
  EXPECT_EQ(fill(R"("{n}")"), "1.50");
  EXPECT_EQ(fill(R"("{s}")"), R"("x\"\u00fc\n")");
  EXPECT_EQ(fill(R"("{no}")"), "null");
  EXPECT_EQ(fill(R"("{list}")"), R"([1,{"b":"c"}])");
  EXPECT_EQ(fill(R"("{o.p}")"), R"({"q":2})");
  EXPECT_EQ(fill(R"("{list.1.b}")"), R"("c")");
}

TEST(TriggerTemplate, InTextAFieldIsText) {
  EXPECT_EQ(fill(R"("id-{_id}:{n}/{yes}")"), R"("id-a:1.50/true")");
  EXPECT_EQ(fill(R"("{s}{s}")"), R"("x\"\u00fc\nx\"\u00fc\n")");
  EXPECT_EQ(fill(R"(" {n}")"), R"(" 1.50")");
}

TEST(TriggerTemplate, TheRestIsCopied) {
  constexpr std::string_view kJson = R"({"a":[1,"x","\"\\\u0001ü",null,{}],"{n}":{"b":[],"c":-1e5},"":""})";
  EXPECT_EQ(json::parse(fill(kJson)), json::parse(kJson));
  EXPECT_EQ(fill(R"({"a":["{n}",{"b":"{_id}!"}],"c":"{{n}}"})"), R"({"a":[1.50,{"b":"a!"}],"c":"{n}"})");
  EXPECT_EQ(fill(R"("{{}}{{{_id}}}")"), R"("{}{a}")");
}

TEST(TriggerTemplate, MissingFieldsAreErrors) {
  EXPECT_THAT(error_of([] { fill(R"("{x}")"); }), HasSubstr("no field `x`"));
  EXPECT_THAT(error_of([] { fill(R"(["{o.p.x}"])"); }), HasSubstr("no field `o.p.x`"));
  for (const auto* json : {R"("a{no}")", R"("a{list}")", R"("{o}a")"})
    EXPECT_THAT(error_of([&] { fill(json); }), HasSubstr("part of a text")) << json;
}

TEST(TriggerTemplate, TextOfAStringTemplate) {
  const auto text = [](std::string_view json) { return Template::parse(json).fill_text(kDocument, 1000); };
  EXPECT_EQ(text(R"("w-{s}")"), "w-x\"ü\n");
  EXPECT_EQ(text(R"("{n}")"), "1.50");
  EXPECT_THAT(error_of([&] { text(R"("{list}")"); }), HasSubstr("`list` must be a string"));
}

TEST(TriggerTemplate, MalformedPlaceholdersAreRefused) {
  EXPECT_THAT(error_of([] { fill(R"("a{b")"); }), HasSubstr("has a `{` without a `}`"));
  EXPECT_THAT(error_of([] { fill(R"(["}"])"); }), HasSubstr("has a `}` without a `{`"));
  EXPECT_THAT(error_of([] { fill(R"("{}")"); }), HasSubstr("invalid_field_name"));
  EXPECT_THAT(error_of([] { fill(R"("{a..b}")"); }), HasSubstr("invalid_field_name"));
  std::string many;
  for (std::size_t i = 0; i <= Template::kMaxPlaceholders; ++i) many += "{n}";
  EXPECT_THAT(error_of([&] { fill("\"" + many + "\""); }), HasSubstr("more than 100 placeholders"));
}

TEST(TriggerTemplate, ItsResultIsBounded) {
  const auto filled = Template::parse(R"({"a":"{list}{n}{n}{n}"})");
  EXPECT_THAT(error_of([&] { Template::parse(R"({"a":["{list}","{n}"]})").fill(kDocument, 10); }),
              HasSubstr("exceeds 10 bytes"));
  EXPECT_FALSE(filled.is_constant());
  EXPECT_TRUE(Template::parse(R"({"a":"{{n}}"})").is_constant());
}

}  // namespace
}  // namespace divan::index::triggers
