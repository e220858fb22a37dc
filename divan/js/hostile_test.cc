// Malicious scripts. Other functions of the same batch must get their rows, and the pool must keep working.
#include "divan/base/error.h"
#include "divan/base/precompiled_test.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using testing::Contains;
using testing::ElementsAre;

struct Attack {
  std::string name;
  std::string body;
  std::vector<FailureKind> outcomes;  // any of these; empty: no observable effect
};

void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

class JsHostile : public testing::TestWithParam<Attack> {
 protected:
  // Exhausting memory takes a while; an endless loop needs less time.
  static Limits limits() {
    const bool eats = testing::Value(GetParam().outcomes, Contains(FailureKind::out_of_memory));
    Limits limits;
    limits.invocation = std::chrono::milliseconds(eats ? 3000 : 150);
    limits.batch = std::chrono::minutes(5);  // on a busy machine a second of processor time may take long
    return limits;
  }

  static PoolOptions options() {
    auto options = test_options();
    options.memory = std::size_t{128} << 20;
    return options;
  }

  SystemClock clock_;
  Pool pool_{options(), clock_};
};

TEST_P(JsHostile, DoesNotAffectOtherFunctions) {
  const std::string good = "function (doc) { emit(doc.n, [doc.n].map(n => n + 1)); }";
  const std::vector<std::string> functions = {
      good, "function (doc) { if (doc.n == 2) { " + GetParam().body + " } emit(doc.n); }", good};
  const std::vector<std::string_view> documents = {R"({"n":1})", R"({"n":2})", R"({"n":3})"};
  auto result = map_all(pool_, functions, documents, limits());
  // A batch ends at a document that cannot be interrupted at its time limit.
  const auto* const last = result.failure(result.documents() - 1, 1);
  if (last != nullptr && last->message.ends_with("could not be interrupted") && result.documents() == 2)
    result.append(map_all(pool_, functions, {documents[2]}, limits()));
  ASSERT_EQ(result.documents(), 3u);
  EXPECT_EQ(shown(result, 0, 1), "1=null");
  EXPECT_EQ(shown(result, 2, 1), "3=null");
  for (std::size_t function : {0u, 2u}) {
    EXPECT_EQ(shown(result, 0, function), "1=[2]");
    EXPECT_EQ(shown(result, 2, function), "3=[4]");
  }
  const auto* failure = result.failure(1, 1);
  if (GetParam().outcomes.empty()) {
    EXPECT_EQ(shown(result, 1, 1), "2=null");
  } else {
    ASSERT_NE(failure, nullptr);
    EXPECT_THAT(GetParam().outcomes, Contains(failure->kind)) << failure->message;
  }
  // The document's other functions fail only if the process dies.
  if (pool_.stats().died == 0) { EXPECT_EQ(shown(result, 1, 0), "2=[3]"); }
  EXPECT_EQ(map_one(pool_, good, R"({"n":4})"), "4=[5]");
}

constexpr auto kException = FailureKind::exception;
constexpr auto kTimeout = FailureKind::timeout;
constexpr auto kMemory = FailureKind::out_of_memory;
constexpr auto kTooLarge = FailureKind::too_large;
constexpr auto kCrashed = FailureKind::crashed;

const std::vector<FailureKind> kMemoryOutcomes = {kMemory, kTimeout, kCrashed};

INSTANTIATE_TEST_SUITE_P(
    Attacks, JsHostile,
    testing::Values(
        Attack{"Loop", "for (;;);", {kTimeout}},
        Attack{
            "LoopInCatch", "for (;;) { try { for (;;); } catch (e) {} finally { continue; } }", {kTimeout}},
        Attack{"LoopInToJson", "emit({toJSON() { for (;;); }});", {kTimeout}},
        Attack{"LoopInThrownToJson", "throw {toJSON() { for (;;); }};", {kTimeout}},
        Attack{"LoopInEval", "eval('for (;;);');", {kTimeout}},
        Attack{"LoopInGenerator", "function* g() { for (;;) yield 1; } for (const x of g());", {kTimeout}},
        Attack{"LoopInProxy", "new Proxy({}, {get() { for (;;); }}).x;", {kTimeout}},
        Attack{"Regexp", "/^(a+)+$/.test('a'.repeat(60) + '!');", {kTimeout}},
        Attack{"RegexpBacktracking", "/(x+x+)+y/.test('x'.repeat(5000));", {kTimeout}},
        Attack{"Strings", "var a = []; for (;;) a.push('x'.repeat(1e6) + a.length);", kMemoryOutcomes},
        Attack{"DoublingString", "var s = 'abcdefgh'; for (;;) { s += s; JSON.stringify(s); }",
               kMemoryOutcomes},
        Attack{"Arrays", "var a = []; for (;;) a.push([1, 2, {a: 3}]);", kMemoryOutcomes},
        Attack{"BigArrays", "var a = []; for (;;) a.push(new Array(100000).fill(1.5));", kMemoryOutcomes},
        Attack{"TypedArrays", "var a = []; for (;;) a.push(new Uint8Array(1e6).fill(1));", kMemoryOutcomes},
        Attack{"HugeTypedArray", "new Uint8Array(4e9).fill(1);", {kMemory, kException, kTimeout}},
        Attack{"CaughtMemory",
               "var a = []; for (;;) { try { for (;;) a.push(new Array(1e5).fill(1)); } catch (e) {} }",
               kMemoryOutcomes},
        Attack{"Closures", "var f = () => 0; for (;;) { let g = f; f = () => g(); }", kMemoryOutcomes},
        Attack{"HugeJoin", "new Array(1e9).join('x');", kMemoryOutcomes},
        Attack{"HugeMessage", "throw new Error('x'.repeat(5e7));", {kException, kMemory, kCrashed}},
        Attack{"Recursion", "(function f() { f(); })();", {kException}},
        Attack{"DeepJson", "var a = []; for (var i = 0; i < 1e5; i++) a = [a]; emit(a);", {kException}},
        Attack{"Circular", "var a = {}; a.a = a; emit(a);", {kException}},
        Attack{"SharedArrays",
               "let v = []; for (let i = 0; i < 60; i++) v = [v, v]; emit(v);",
               {kTooLarge, kTimeout, kMemory}},
        Attack{"SharedObjects",
               "let v = {}; for (let i = 0; i < 60; i++) v = {a: v, b: v}; emit(v);",
               {kTooLarge, kTimeout, kMemory}},
        Attack{"LogInGetter",
               "let n = 0; const o = {s: 'x'.repeat(14e6), get a() { if (n++ < 60) log(o); return 1; }}; "
               "log(o);",
               {kException, kTooLarge, kTimeout, kMemory}},
        Attack{"ManyEmits", "for (;;) emit(1);", {kTooLarge, kTimeout}},
        Attack{"BigEmits", "for (;;) emit('x'.repeat(1e6));", {kTooLarge, kTimeout, kMemory, kCrashed}},
        Attack{"HugeEmit", "emit('x'.repeat(5e7));", {kTooLarge, kMemory, kCrashed}},
        Attack{"HugeEmitEscaped", "emit('\\n'.repeat(1e7));", {kTooLarge, kMemory}},
        Attack{"HugeLog", "log({a: 'x'.repeat(5e7)});", {kTooLarge, kMemory, kCrashed}},
        Attack{"HugeLogString", "log('x'.repeat(5e7));", {}},
        Attack{"ThrowUndefined", "throw undefined;", {kException}},
        Attack{"ErrorWithGetter",
               "var e = new Error('a'); Object.defineProperty(e, 'message', {get() { for (;;); }}); throw e;",
               {kException}},
        Attack{"Import", "import('/etc/passwd');", {}},
        Attack{"ImportMeta", "eval('import.meta');", {kException}},
        Attack{"Require", "require('fs');", {kException}},
        Attack{"FunctionConstructor", "new Function('return this')().process.exit();", {kException}}),
    [](const auto& attack) { return attack.param.name; });

class JsHostilePrograms : public testing::Test {
 protected:
  SystemClock clock_;
  Pool pool_{test_options(), clock_};
};

TEST_F(JsHostilePrograms, AnEndlessLoopInEveryDocumentCostsAFewTimeouts) {
  std::vector<std::string> lines;
  auto options = test_options();
  options.log = [&](const Function& function, std::string_view) { lines.push_back(function.name); };
  Pool pool(options, clock_);
  Limits limits;
  limits.invocation = std::chrono::milliseconds(20);
  limits.batch = std::chrono::minutes(5);  // a few timeouts in processor time, on a machine that may be busy
  const std::vector<std::string_view> documents(300, "{}");
  const auto result =
      pool.map(program_of({"doc => { log(1); for (;;); }", "doc => emit(1)"}), documents, limits);
  ASSERT_EQ(result.documents(), 300u);
  for (std::size_t i = 0; i < 300; ++i) {
    ASSERT_NE(result.failure(i, 0), nullptr);
    ASSERT_EQ(result.failure(i, 0)->kind, FailureKind::timeout);
    ASSERT_EQ(shown(result, i, 1), "1=null");
  }
  EXPECT_THAT(lines, ElementsAre("f0", "f0", "f0"));
}

TEST_F(JsHostilePrograms, TheDocumentThatKillsTheProcessFailsAlone) {
  // A single call into the engine that cannot be interrupted: the process ends itself.
  Limits limits;
  limits.batch = std::chrono::minutes(5);
  limits.invocation = std::chrono::milliseconds(100);
  const auto result =
      map_all(pool_,
              {"doc => emit(doc.n)",
               "doc => { if (doc.kill) 'a'.repeat(4e7).indexOf('a'.repeat(2e7) + 'b'); emit(0); }"},
              {R"({"n":1})", R"({"n":2})", R"({"n":3,"kill":true})", R"({"n":4,"kill":true})"}, limits);
  // The caller requests the rest.
  ASSERT_EQ(result.documents(), 3u);
  for (std::size_t document : {0u, 1u}) {
    EXPECT_EQ(shown(result, document, 0), std::to_string(document + 1) + "=null");
    EXPECT_EQ(shown(result, document, 1), "0=null");
  }
  for (std::size_t function : {0u, 1u}) {
    ASSERT_NE(result.failure(2, function), nullptr);
    EXPECT_EQ(result.failure(2, function)->kind, FailureKind::timeout);
    EXPECT_EQ(result.failure(2, function)->message,
              "exceeded the time limit of one call and could not be interrupted");
  }
  EXPECT_EQ(pool_.stats().died, 1u);  // the time is spent once only
  EXPECT_EQ(children().size(), 1u);
}

TEST_F(JsHostilePrograms, ABatchOfOneThatKillsTheProcessFails) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(50);
  const auto result =
      map_all(pool_, {"doc => { 'a'.repeat(4e7).indexOf('a'.repeat(2e7) + 'b'); }"}, {"{}"}, limits);
  ASSERT_EQ(result.documents(), 1u);
  ASSERT_NE(result.failure(0, 0), nullptr);
  EXPECT_EQ(result.failure(0, 0)->kind, FailureKind::timeout);
  EXPECT_EQ(pool_.stats().died, 1u);
}

TEST_F(JsHostilePrograms, CompilingIsLimitedToo) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(50);
  const auto result = map_all(pool_, {"(function () { for (;;); })()", "doc => emit(1)"}, {"{}"}, limits);
  ASSERT_NE(result.failure(0, 0), nullptr);
  EXPECT_EQ(result.failure(0, 0)->kind, FailureKind::compilation);
  EXPECT_EQ(shown(result, 0, 1), "1=null");
}

TEST_F(JsHostilePrograms, AProgramThatKillsItsProcessDuringCompilationFailsTheCall) {
  Limits limits;
  limits.invocation = std::chrono::milliseconds(50);
  const std::string killer = "('a'.repeat(4e7).indexOf('a'.repeat(2e7) + 'b'), doc => emit(1))";
  try {
    map_all(pool_, {killer}, {"{}"}, limits);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 500);
    EXPECT_EQ(error.name(), "os_process_error");
  }
  EXPECT_EQ(map_one(pool_, "doc => emit(1)"), "1=null");
}

TEST_F(JsHostilePrograms, MemoryOfAProgramIsFreedForTheNext) {
  // The first program fills the heap through its global object; the next one has memory again.
  Limits limits;
  limits.invocation = std::chrono::seconds(20);
  map_all(pool_, {"doc => { kept = []; for (;;) kept.push(new Array(1e5).fill(1)); }"}, {"{}"}, limits);
  for (int i = 0; i < static_cast<int>(protocol::kSlots) + 1; ++i) {
    EXPECT_EQ(map_one(pool_, "doc => emit(" + std::to_string(i) + ")"), std::to_string(i) + "=null");
  }
  EXPECT_EQ(map_one(pool_,
                    "doc => { var a = []; for (var i = 0; i < 50; i++) a.push(new Array(1e5).fill(1));"
                    " emit(a.length); }"),
            "50=null");
}

}  // namespace
}  // namespace divan::js
