// require() in map functions: CommonJS modules of a design document's `views.lib`.
#include "divan/base/error.h"
#include "divan/base/precompiled_test.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class JsModules : public testing::Test {
 protected:
  // The rows that one function emits for each of the documents, or its failure.
  std::string map(const std::string& lib, const std::string& source,
                  const std::vector<std::string_view>& documents = {"{}"}, const Limits& limits = {}) {
    auto program = program_of({source});
    program.id += lib;
    if (!lib.empty()) program.root = R"({"views":{"lib":)" + lib + "}}";
    const auto result = pool_.map(program, documents, limits);
    std::string text;
    for (std::size_t i = 0; i < result.documents(); ++i) {
      text += (i == 0 ? "" : "; ") + shown(result, i, 0);
    }
    return text;
  }
  // The value of the expression `what`, as a key.
  std::string value(const std::string& lib, const std::string& what) {
    return map(lib, "function (doc) { emit(" + what + "); }");
  }

  SystemClock clock_;
  Pool pool_{test_options(), clock_};
};

TEST_F(JsModules, AModuleExports) {
  const std::string lib = R"({"dates":"exports.year = function (text) { return text.slice(0, 4); };"})";
  EXPECT_EQ(map(lib, "function (doc) { emit(require('views/lib/dates').year(doc.date)); }",
                {R"({"date":"2024-05-06"})", R"({"date":"1999"})"}),
            R"("2024"=null; "1999"=null)");
}

TEST_F(JsModules, ExportsCanBeReplaced) {
  EXPECT_EQ(value(R"({"f":"module.exports = function () { return 7; };"})", "require('views/lib/f')()"),
            "7=null");
  EXPECT_EQ(value(R"({"f":"module.exports = 'text'; exports.lost = 1;"})", "require('views/lib/f')"),
            "\"text\"=null");
}

TEST_F(JsModules, AModuleKnowsItself) {
  EXPECT_EQ(
      value(R"({"a":{"b":"exports.all = [module.id, module.exports === exports, this === globalThis];"}})",
            "require('views/lib/a/b').all"),
      R"(["views/lib/a/b",true,true]=null)");
}

TEST_F(JsModules, PathsAreRelativeToTheModule) {
  const std::string lib = R"({
    "top": "exports.name = 'top';",
    "deep": {
      "one": "exports.all = [require('./two').name, require('../top').name, require('views/lib/top').name,
                             require('./deeper/three').all, require('../deep/./two').name];",
      "two": "exports.name = 'two';",
      "deeper": {"three": "exports.all = [require('../two').name, require('../../top').name];"}
    }})";
  std::string one_line = lib;
  std::erase(one_line, '\n');
  EXPECT_EQ(value(one_line, "require('views/lib/deep/one').all"),
            R"(["two","top","top",["two","top"],"two"]=null)");
}

TEST_F(JsModules, AModuleRunsOnce) {
  EXPECT_EQ(
      map(R"({"n":"loads = (this.loads || 0) + 1; exports.count = 0;","m":"exports.n = require('./n');"})",
          "function (doc) { var n = require('views/lib/n'); n.count++; require('views/lib/m');"
          " emit([loads, n === require('views/lib/m').n, n.count]); }",
          {"{}", "{}"}),
      "[1,true,1]=null; [1,true,2]=null");
}

TEST_F(JsModules, CircularModulesSeeThePartialExports) {
  EXPECT_EQ(value(R"({"a":"exports.early = 1; exports.b = require('./b'); exports.late = 2;",
                      "b":"var a = require('./a'); exports.seen = [a.early, a.late]; exports.a = a;"})",
                  "[require('views/lib/a').b.seen, require('views/lib/b').a.late]"),
            "[[1,null],2]=null");
  EXPECT_EQ(
      value(R"({"a":"exports.self = require('views/lib/a') === exports;"})", "require('views/lib/a').self"),
      "true=null");
}

TEST_F(JsModules, AMissingModuleIsCouchDbsError) {
  const std::string lib = R"({"a":"exports.x = 1;","data":{"n":1}})";
  EXPECT_EQ(value(lib, "require('views/lib/b')"),
            "!invalid_require_path: Object has no property \"b\". {\"a\":\"exports.x = "
            "1;\",\"data\":{\"n\":1}} (line 1)");
  EXPECT_THAT(value(lib, "require('lib/a')"),
              StartsWith("!invalid_require_path: Object has no property \"lib\". "));
  EXPECT_THAT(value(lib, "require('views/lib/a/length')"),
              StartsWith("!invalid_require_path: Object has no property \"length\". \"exports.x"));
  EXPECT_THAT(value(lib, "require('views/lib/toString')"),
              StartsWith("!invalid_require_path: Object has no property \"toString\". "));
  EXPECT_THAT(value(lib, "require('./a')"),
              StartsWith("!invalid_require_path: Object has no parent undefined"));
  EXPECT_THAT(value(lib, "require('views/../../a')"),
              StartsWith("!invalid_require_path: Object has no parent "));
  EXPECT_THAT(value(lib, "require('views/lib/data')"),
              StartsWith("!invalid_require_path: Must require a JavaScript string, not: object"));
  EXPECT_THAT(value(lib, "require('views/lib/data/n')"),
              StartsWith("!invalid_require_path: Must require a JavaScript string, not: number"));
  EXPECT_THAT(value(lib, "require()"),
              StartsWith("!invalid_require_path: Object has no property \"undefined\"."));
  EXPECT_THAT(value("{}", "require('views/lib/a')"), StartsWith("!invalid_require_path: "));
  // Scripts can catch it.
  EXPECT_EQ(map(lib, "function (doc) { try { require('views/lib/b'); } catch (e) { emit(e[1]); } }"),
            "\"invalid_require_path\"=null");
}

TEST_F(JsModules, ErrorsNameTheModule) {
  EXPECT_THAT(value(R"({"a":"exports.x = 1;\nfunction ("})", "require('views/lib/a')"),
              testing::AllOf(
                  StartsWith("!compilation_error: Module require('views/lib/a') raised error SyntaxError: "),
                  HasSubstr("(line 2 of module views/lib/a) (line 1)")));
  EXPECT_THAT(
      value(R"({"a":"\n\nnowhere();"})", "require('views/lib/a')"),
      HasSubstr("raised error ReferenceError: nowhere is not defined (line 3 of module views/lib/a)"));
  // The innermost error is reported.
  EXPECT_THAT(value(R"({"a":"require('./b');","b":"require('./c');"})", "require('views/lib/a')"),
              StartsWith("!invalid_require_path: Object has no property \"c\"."));
  // A function of a module, called later.
  EXPECT_THAT(
      value(R"({"a":"exports.f = function (d) {\nreturn d.x.y;\n};"})", "require('views/lib/a').f(doc)"),
      testing::AllOf(StartsWith("!TypeError: "), EndsWith("(line 2 of module views/lib/a)")));
  // It fails again for the next document; other functions get their rows.
  EXPECT_THAT(map(R"({"a":"throw new Error('always');"})", "function (doc) { require('views/lib/a'); }",
                  {"{}", "{}"}),
              testing::ContainsRegex("always .*; .*always"));
}

TEST_F(JsModules, AModuleThatTimesOutIsNotLoaded) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(100);
  const std::string lib = R"({"a":"exports.x = 1; for (;;);"})";
  // On a busy machine the batch may end with the first document (pool.h).
  std::string shown;
  for (int tries = 0; tries < 50 && shown.find(';') == std::string::npos; ++tries) {
    shown = map(lib, "function (doc) { emit(require('views/lib/a').x); }", {"{}", "{}"}, limits);
    ASSERT_THAT(shown, StartsWith("!exceeded the time"));
  }
  EXPECT_THAT(shown, testing::ContainsRegex("^!exceeded the time.*; !exceeded the time"));
}

TEST_F(JsModules, FunctionsCannotChangeLib) {
  // Changes of one program do not affect another.
  const std::string lib = R"({"a":"exports.x = 1;"})";
  map(lib,
      "function (doc) { require('views/lib/a').x = 2; Object.prototype.hasOwnProperty = null; JSON = null; "
      "}");
  EXPECT_EQ(value(lib, "require('views/lib/a').x"), "1=null");
}

TEST_F(JsModules, WithoutLibThereIsNoRequire) {
  EXPECT_EQ(map("", "function (doc) { emit(typeof require); }"), "\"undefined\"=null");
  const std::vector<ReduceGroup> groups(1);
  EXPECT_EQ(
      std::get<std::string>(pool_.reduce({"r", "function () { return typeof require; }"}, false, groups)[0]),
      "\"undefined\"");
}

TEST_F(JsModules, ALibThatIsInvalidJsonFailsTheFunctions) {
  EXPECT_THAT(map("{", "function (doc) { emit(1); }"), StartsWith("!the modules: SyntaxError"));
}

TEST_F(JsModules, FunctionsAreCheckedWithTheirModules) {
  const Function function{
      "f", "(function () { var x = require('views/lib/a').x; return function (doc) { emit(x); }; })()"};
  pool_.check(function, "map function in the 'v' view", R"({"views":{"lib":{"a":"exports.x = 1;"}}})");
  EXPECT_THROW(pool_.check(function, "map function in the 'v' view", "{}"), Error);
}

}  // namespace
}  // namespace divan::js
