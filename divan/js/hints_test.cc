// Functions that SpiderMonkey 1.8.5 accepted: the message suggests a replacement.
#include "divan/base/error.h"
#include "divan/base/precompiled_test.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using testing::HasSubstr;

struct Old {
  std::string name;
  std::string source;
  std::string advice;
};

void PrintTo(const Old& old, std::ostream* out) { *out << old.name; }

class JsHints : public testing::TestWithParam<Old> {};

TEST_P(JsHints, SuggestAReplacement) {
  SystemClock clock;
  Pool pool(test_options(), clock);
  const auto result = map_all(pool, {GetParam().source, "doc => emit(1)"}, {R"({"tags":["a"]})"});
  ASSERT_NE(result.failure(0, 0), nullptr);
  EXPECT_THAT(result.failure(0, 0)->message, HasSubstr(GetParam().advice));
  EXPECT_THAT(result.failure(0, 0)->message, HasSubstr("(line 2)"));
  EXPECT_EQ(shown(result, 0, 1), "1=null");
}

INSTANTIATE_TEST_SUITE_P(
    Extensions, JsHints,
    testing::Values(
        Old{"ForEach", "function (doc) {\n for each (var x in doc.tags) emit(x); }", "Object.values"},
        Old{"ExpressionClosure", "function (doc) {\n [1].map(function (x) x * x); }", "write `x => x * x`"},
        Old{"ArrayComprehension", "function (doc) {\n emit([x * 2 for (x in doc)]); }", "map() and filter()"},
        Old{"ForEachComprehension", "function (doc) {\n emit([x for each (x in doc)]); }",
            "map() and filter()"},
        Old{"GeneratorExpression", "function (doc) {\n var g = (x for (x in doc)); }", "map() and filter()"},
        Old{"GeneratorArgument", "function (doc) {\n sum(x for (x in doc)); }", "map() and filter()"},
        Old{"LetBlock", "function (doc) {\n let (x = 1) { emit(x); } }", "{ let x = 1; ... }"},
        Old{"LetExpression", "function (doc) {\n emit(let (x = 1) x); }", "{ let x = 1; ... }"},
        Old{"ConditionalCatch", "function (doc) {\n try { f(); } catch (e if e instanceof TypeError) {} }",
            "catch, test, and rethrow"},
        Old{"Xml", "function (doc) {\n emit(<a>{doc.b}</a>); }", "E4X"},
        Old{"XmlList", "function (doc) {\n var x = <></>; }", "E4X"},
        Old{"XmlNamespace", "function (doc) {\n default xml namespace = 'x'; }", "E4X"},
        Old{"XmlDescendants", "function (doc) {\n emit(doc..title); }", "E4X"},
        Old{"XmlAttribute", "function (doc) {\n emit(doc.@id); }", "E4X"},
        Old{"XmlConstructor", "function (doc) {\n emit(new XML('<a/>')); }", "E4X"},
        Old{"LegacyGenerator", "function (doc) {\n var g = function () { yield 1; }; }",
            "function* () { ... }"},
        Old{"SharpVariable", "function (doc) {\n var a = #1=[#1#]; }", "#1="},
        Old{"SeveralFunctions", "function f(x) { return x; }\nfunction (doc) { emit(f(doc)); }",
            "single function expression"},
        Old{"Declarations", "\nvar x = 1; function (doc) { emit(x); }", "single function expression"},
        Old{"ConstWithoutValue", "function (doc) {\n const x; x = 1; }", "needs a value"},
        Old{"ConstAssigned", "function (doc) {\n const x = 1; x = 2; }", "ignored assignments"},
        Old{"Iterator", "function (doc) {\n for (var p in Iterator(doc)) emit(p); }", "Object.entries"},
        Old{"StopIteration", "function (doc) {\n throw StopIteration; }", "Object.entries"},
        Old{"ToSource", "function (doc) {\n emit(doc.tags.toSource()); }", "JSON.stringify"},
        Old{"Uneval", "function (doc) {\n emit(uneval(doc)); }", "JSON.stringify"},
        Old{"ToLocaleFormat", "function (doc) {\n emit(new Date(0).toLocaleFormat('%Y')); }", "toISOString"},
        Old{"ArrayGenerics", "function (doc) {\n Array.forEach(doc.tags, function (t) { emit(t); }); }",
            "list.forEach(f)"},
        Old{"StringGenerics", "function (doc) {\n emit(String.trim(' x ')); }", "removed from JavaScript"}),
    [](const auto& old) { return old.param.name; });

TEST(JsNoHint, OrdinarySyntaxErrorsHaveNone) {
  SystemClock clock;
  Pool pool(test_options(), clock);
  for (const std::string source :
       {"function (doc) { emit(doc; }", "function (doc) { emit(1)", "function (doc) { nothing(); }",
        "function (doc) { doc.a.b.c; }", "function (doc) { for (var x of 7) {} }",
        "function (doc) { emit([1, 2; }", "function (doc) { if (x { } }"}) {
    EXPECT_THAT(map_one(pool, source), testing::EndsWith("(line 1)")) << source;
  }
}

TEST(JsHint, IsPartOfTheCheckOfADesignDocument) {
  SystemClock clock;
  Pool pool(test_options(), clock);
  try {
    pool.check({"v", "function (doc) {\n\n for each (var x in doc) emit(x); }"},
               "map function in the 'v' view");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        error.reason(),
        "Compilation of the map function in the 'v' view failed: SyntaxError: missing ( after for (line 3) "
        "`for each (x in y)` was removed from JavaScript: write `for (const x of Object.values(y))`.");
  }
}

}  // namespace
}  // namespace divan::js
