// Functions other than map and reduce: filters, validations, updates.
#include "divan/base/error.h"
#include "divan/base/precompiled_test.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class JsApply : public ::testing::Test {
 protected:
  // The result of each call, or its failure as "!message".
  std::vector<std::string> apply(ResultKind kind, const std::string& source,
                                 const std::vector<Arguments>& calls, const std::string& root = "{}") {
    auto program = program_of({source});
    program.id += root;
    program.root = root;
    std::vector<std::string> shown;
    while (shown.size() < calls.size()) {
      for (const auto& outcome : pool_.apply(program, kind, std::span(calls).subspan(shown.size()))) {
        const auto* failure = std::get_if<Failure>(&outcome);
        shown.push_back(failure != nullptr ? "!" + failure->message : std::get<std::string>(outcome));
      }
    }
    return shown;
  }
  std::string one(ResultKind kind, const std::string& source, std::string_view first = "[]",
                  std::string_view last = "[]", const std::string& root = "{}") {
    return apply(kind, source, {{first, last}}, root).front();
  }

  SystemClock clock_;
  Pool pool_{test_options(), clock_};
};

TEST_F(JsApply, PassesTheArgumentsOfBothArrays) {
  EXPECT_THAT(apply(ResultKind::value, "function () { return Array.prototype.slice.call(arguments); }",
                    {{"[1,\"\\u00e4\"]", R"([{"a":[null]}])"}, {"[]", "[]"}, {"[2]", "[3,4,5]"}}),
              ElementsAre(R"([1,"ä",{"a":[null]}])", "[]", "[2,3,4,5]"));
  EXPECT_EQ(pool_.stats().applied, 3u);
}

TEST_F(JsApply, TheDesignDocumentIsThisAndHasTheModules) {
  const std::string root = R"({"limit":7,"lib":{"m":"exports.twice = function (n) { return 2 * n; };"}})";
  EXPECT_EQ(one(ResultKind::value, "function (n) { return require('lib/m').twice(n) + this.limit; }", "[4]",
                "[]", root),
            "15");
}

// What one call does to it must not be visible to the next.
TEST_F(JsApply, TheDesignDocumentCannotBeChanged) {
  const std::string source =
      "function () { this.n.push; this.x = 1; delete this.n; return [this.x, this.n]; }";
  EXPECT_THAT(apply(ResultKind::value, source, {{"[]", "[]"}, {"[]", "[]"}}, R"({"n":[1]})"),
              ElementsAre("[null,[1]]", "[null,[1]]"));
}

TEST_F(JsApply, TruthIsJavaScripts) {
  EXPECT_THAT(apply(ResultKind::truth, "doc => doc",
                    {{"[0]", "[]"},
                     {"[\"\"]", "[]"},
                     {"[null]", "[]"},
                     {"[{}]", "[]"},
                     {"[\"x\"]", "[]"},
                     {"[-1]", "[]"}}),
              ElementsAre("false", "false", "false", "true", "true", "true"));
  EXPECT_EQ(one(ResultKind::truth, "() => (() => 1)"), "true");
  EXPECT_EQ(one(ResultKind::truth, "() => NaN"), "false");
  EXPECT_EQ(one(ResultKind::truth, "() => undefined"), "false");
}

// As in CouchDB, where the request is parsed once for all documents of a batch.
TEST_F(JsApply, FiltersShareTheRequest) {
  const std::string source = "(doc, req) => { req.n = (req.n || 0) + 1; return req.n > 1; }";
  EXPECT_THAT(apply(ResultKind::truth, source, {{"[{}]", "[{}]"}, {"[{}]", "[{}]"}, {"[{}]", "[{\"a\":1}]"}}),
              ElementsAre("false", "true", "false"));
  EXPECT_THAT(apply(ResultKind::refusal, "(doc, req) => { req.n = (req.n || 0) + 1; throw req.n; }",
                    {{"[{}]", "[{}]"}, {"[{}]", "[{}]"}}),
              ElementsAre("1", "1"));
}

TEST_F(JsApply, ARefusalIsWhatIsThrown) {
  EXPECT_EQ(one(ResultKind::refusal, "() => 7"), "");
  EXPECT_EQ(one(ResultKind::refusal, "() => { throw {forbidden: 'no \\u00e4'}; }"),
            R"({"forbidden":"no ä"})");
  EXPECT_EQ(one(ResultKind::refusal, "() => { throw ({unauthorized: {a: 1}}); }"),
            R"({"unauthorized":{"a":1}})");
  EXPECT_EQ(one(ResultKind::refusal, "() => { throw 'text'; }"), R"("text")");
  EXPECT_EQ(one(ResultKind::refusal, "() => { throw undefined; }"), "null");
  EXPECT_EQ(one(ResultKind::refusal, "() => { throw null; }"), "null");
}

TEST_F(JsApply, AnErrorIsAFailure) {
  EXPECT_EQ(one(ResultKind::refusal, "(a) => {\n a.b.c; }", "[{}]"), "!TypeError: a.b is undefined (line 2)");
  EXPECT_THAT(one(ResultKind::refusal, "() => { throw new Error('wrong'); }"), StartsWith("!Error: wrong"));
  // CouchDB's own test for an Error.
  EXPECT_THAT(one(ResultKind::refusal, "() => { throw {name: 'n', stack: 's', forbidden: 'x'}; }"),
              StartsWith("!"));
  EXPECT_THAT(one(ResultKind::refusal, "() => { throw {get name() { throw {forbidden: 'x'}; }}; }"),
              StartsWith("!"));
  EXPECT_THAT(one(ResultKind::refusal, "() => { const a = {}; a.a = a; throw a; }"), StartsWith("!"));
  EXPECT_THAT(one(ResultKind::value, "() => { throw {forbidden: 'x'}; }"), HasSubstr("forbidden"));
  EXPECT_THAT(one(ResultKind::value, "() => {"), StartsWith("!SyntaxError"));
}

TEST_F(JsApply, AnEndlessLoopFailsItsCallOnly) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(50);
  const auto program = program_of({"(n) => { while (n === 1) {} return n; }"});
  const std::vector<Arguments> calls = {{"[0]", "[]"}, {"[1]", "[]"}, {"[2]", "[]"}};
  const auto outcomes = pool_.apply(program, ResultKind::value, calls, limits);
  ASSERT_EQ(outcomes.size(), 3u);
  EXPECT_EQ(std::get<std::string>(outcomes[0]), "0");
  EXPECT_EQ(std::get<Failure>(outcomes[1]).kind, FailureKind::timeout);
  EXPECT_EQ(std::get<std::string>(outcomes[2]), "2");
}

TEST_F(JsApply, ManyCallsTakeSeveralBatches) {
  const std::vector<Arguments> calls(5000, {"[\"x\"]", "[]"});
  Limits limits;
  limits.batch = std::chrono::milliseconds(1);
  const auto program = program_of({"(s) => s.repeat(20000)"});
  std::size_t done = 0, batches = 0;
  while (done < calls.size()) {
    const auto outcomes = pool_.apply(program, ResultKind::value, std::span(calls).subspan(done), limits);
    done += outcomes.size();
    ++batches;
  }
  EXPECT_EQ(done, calls.size());
  EXPECT_GT(batches, 1u);
}

// A call without a document, whose path has `segments` segments.
std::string show_arguments(int segments, const std::string& accept = "*/*") {
  std::string path;
  for (int i = 0; i < segments; ++i) path += i == 0 ? "1" : ",1";
  return R"([null,{"path":[)" + path + R"(],"query":{},"headers":{"Accept":")" + accept + R"("}}])";
}

TEST_F(JsApply, AShowHasAResponse) {
  const auto show = [&](const std::string& source, int segments = 5) {
    return one(ResultKind::show, source, show_arguments(segments));
  };
  EXPECT_EQ(show("() => 'x'"), R"({"response":{"body":"x"}})");
  EXPECT_EQ(show("() => ({json: 1, code: 201})"), R"({"response":{"json":1,"code":201}})");
  EXPECT_EQ(show("() => undefined"), R"({"response":{}})");
  EXPECT_EQ(show("() => 7"), R"({"error":["render_error","undefined response from show function"]})");
  EXPECT_EQ(show("() => { send(1); send(null); return 'x'; }"), R"({"response":{"body":"1nullx"}})");
  EXPECT_EQ(show("() => { start({code: 404}); send('a'); return {json: 1}; }"),
            R"({"response":{"code":404,"json":1,"headers":{},"body":"a"}})");
  EXPECT_THAT(show("() => { oops(); }"), StartsWith("!ReferenceError"));
  EXPECT_EQ(show("() => { oops(); }", 6), R"({"error":["not_found","document not found"]})");
  EXPECT_EQ(show("() => { getRow(); }"), R"({"error":["list_error","getRow() is for list functions"]})");
}

// What one call provides or sends must not be visible in the next.
TEST_F(JsApply, CallsThatRespondShareNothing) {
  const std::string source =
      "(doc, req) => { if (req.n === 1) { provides('html', () => 'h'); start({code: 404}); send('a'); } "
      "return 'b'; }";
  const std::string first = R"([{},{"n":1,"path":[]}])", second = R"([{},{"n":2,"path":[]}])";
  EXPECT_THAT(
      apply(ResultKind::show, source, {{first, "[]"}, {second, "[]"}}),
      ElementsAre(
          R"({"response":{"code":404,"body":"abh","headers":{"Content-Type":"text/html; charset=utf-8"}}})",
          R"({"response":{"body":"b"}})"));
}

TEST_F(JsApply, AcceptChoosesWhatIsProvided) {
  const auto chosen = [&](const std::string& accept) {
    return one(ResultKind::show,
               "() => { registerType('foo', 'x/foo', 'X/Bar'); for (const name of ['html', 'foo', 'json']) "
               "provides(name, () => name); }",
               show_arguments(5, accept));
  };
  const auto response = [](const std::string& body, const std::string& type) {
    return R"({"response":{"body":")" + body + R"(","headers":{"Content-Type":")" + type + R"("}}})";
  };
  const std::string html = response("html", "text/html; charset=utf-8");
  EXPECT_EQ(chosen("*/*"), html);
  EXPECT_EQ(chosen("*"), html);
  EXPECT_EQ(chosen("text/html;level=1"), html);
  EXPECT_EQ(chosen(" TEXT/HTML ; q=0.1 "), html);
  EXPECT_EQ(chosen("application/json, */*"), response("json", "application/json"));
  EXPECT_EQ(chosen("text/*;q=0.5, x/*;q=0.6"), response("foo", "x/foo"));
  EXPECT_EQ(chosen("x/bar"), response("foo", "X/Bar"));
  EXPECT_EQ(chosen("*/*;q=0.1, text/html;q=0, x/foo;q=0"), response("foo", "X/Bar"));
  EXPECT_THAT(chosen("image/png, */*;q=0"), StartsWith(R"({"error":["not_acceptable",)"));
  EXPECT_THAT(chosen("image/png,,;"), StartsWith(R"({"error":["not_acceptable",)"));
}

TEST_F(JsApply, AListHasItsRowsAtOnce) {
  const auto list = [&](const std::string& source, std::string_view rows = "[1,2]") {
    return one(ResultKind::list, source, R"([{"n":7},{"query":{},"headers":{}}])", rows);
  };
  EXPECT_EQ(list("(head) => [head.n, getRow(), getRow(), getRow(), getRow()]"),
            R"({"body":"7,1,2,,","start":{}})");
  EXPECT_EQ(list("() => getRow()", "[]"), R"({"body":"","start":{}})");
  EXPECT_EQ(
      list("() => { start({code: 1}); getRow(); start({code: 2}); send('x'); start({code: 3}); getRow(); "
           "start({code: 4}); }"),
      R"({"body":"x","start":{"code":3}})");
  EXPECT_EQ(list("() => { provides('csv', () => getRow() + ',' + getRow()); return 'ignored'; }"),
            R"({"body":"1,2","start":{"headers":{"Content-Type":"text/csv"}}})");
}

TEST_F(JsApply, ThrownErrorsHaveANameAndAReason) {
  const auto call = [&](const std::string& what) {
    return one(ResultKind::call, "() => { throw " + what + "; }");
  };
  EXPECT_EQ(one(ResultKind::call, "() => [1]"), R"({"value":[1]})");
  EXPECT_EQ(one(ResultKind::call, "() => undefined"), "{}");
  EXPECT_EQ(call("['error', 'a', 'b']"), R"({"error":["a","b"]})");
  EXPECT_EQ(call("['fatal', 'a', 'b']"), R"({"error":["a","b"]})");
  EXPECT_EQ(call("['error', 'a']"), R"({"error":["a","undefined"]})");
  EXPECT_EQ(call("{error: 'a', reason: {b: 1}}"), R"({"error":["a","{\"b\":1}"]})");
  EXPECT_EQ(call("{unauthorized: 'b'}"), R"({"error":["unauthorized","b"]})");
  EXPECT_THAT(call("['x', 'a', 'b']"), StartsWith("!"));
  EXPECT_THAT(call("null"), StartsWith("!"));
  EXPECT_THAT(call("{get error() { throw new Error('getter'); }}"), StartsWith("!Error: getter"));
}

TEST_F(JsApply, NothingIsEmitted) {
  EXPECT_EQ(one(ResultKind::value, "() => { emit(1, 2); return typeof emit; }"), "\"function\"");
}

}  // namespace
}  // namespace divan::js
