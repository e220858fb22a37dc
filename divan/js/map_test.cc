#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <boost/json.hpp>

#include "divan/base/precompiled_test.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class JsMap : public testing::Test {
 protected:
  SystemClock clock_;
  Pool pool_{test_options(), clock_};
};

const std::vector<std::pair<std::string, std::string>>& values() {
  static const std::vector<std::pair<std::string, std::string>> cases = {
      {"1", "1"},
      {"-0", "0"},
      {"-7", "-7"},
      {"1.5", "1.5"},
      {"0.1 + 0.2", "0.30000000000000004"},
      {"4294967296", "4294967296"},
      {"9007199254740991", "9007199254740991"},
      {"9007199254740993", "9007199254740992"},
      {"-9007199254740992", "-9007199254740992"},
      {"1e20", "100000000000000000000"},
      {"1e21", "1e+21"},
      {"5e-324", "5e-324"},
      {"NaN", "null"},
      {"-Infinity", "null"},
      {"true", "true"},
      {"false", "false"},
      {"null", "null"},
      {"undefined", "null"},
      {"function () {}", "null"},
      {"Symbol()", "null"},
      {"''", R"("")"},
      {"'plain'", R"("plain")"},
      {"'a' + 'b'", R"("ab")"},
      {R"('a"b')", R"("a\"b")"},
      {R"('a\\b')", R"("a\\b")"},
      {R"('a\x1fb')", R"("a\u001fb")"},
      {R"('a\x20~\x7fb')",
       "\"a ~\x7f"
       "b\""},
      {R"('"\\/\b\f\n\r\t\x01\x7f')", R"("\"\\/\b\f\n\r\t\u0001)"
                                      "\x7f\""},
      {"'\\xe4\\u20ac\\ud83d\\ude00'", "\"ä€😀\""},
      {"'\\ud800x\\udc00'", R"("\ud800x\udc00")"},
      {"[1, [2, undefined], {}]", "[1,[2,null],{}]"},
      {"({b: 1, a: {c: undefined, d: 'ä'}})", R"({"b":1,"a":{"d":"ä"}})"},
      {"new Date(0)", R"("1970-01-01T00:00:00.000Z")"},
      {"({toJSON() { return [3]; }})", "[3]"},
      {"({toJSON() {}})", "null"},
      {"new String('boxed')", R"("boxed")"},
      {"[,1]", "[null,1]"},
  };
  return cases;
}

TEST_F(JsMap, KeysAndValuesAreWhatJsonStringifyWritesInAnArray) {
  for (const auto& [expression, json] : values()) {
    EXPECT_EQ(map_one(pool_, "function (doc) { emit(" + expression + ", [" + expression + "]); }"),
              json + "=[" + json + "]")
        << expression;
  }
}

// Texts are long: a failure shows how they begin.
void expect_same(const std::string& actual, const std::string& expected, const std::string& what) {
  EXPECT_TRUE(actual == expected) << what << ": " << actual.size() << " bytes, " << actual.substr(0, 100)
                                  << "; expected " << expected.size() << ", " << expected.substr(0, 100);
}

// JSON.stringify has no memory for such a text (sandbox/json_text.cc).
TEST_F(JsMap, ALongTextIsWrittenInParts) {
  auto options = test_options();
  options.memory = std::size_t{128} << 20;
  Pool pool(options, clock_);
  const auto emitted = [&](const std::string& expression) {
    return map_one(pool, "function (doc) { emit(1, " + expression + "); }");
  };
  const std::string plain(12'000'000, 'x');
  for (const auto& [expression, json] : values()) {
    const auto value = [&expression = expression](const std::string& text) {
      return "[" + expression + ", {a: " + expression + ", b: [" + expression + R"(], '\xe4"': )" + text +
             ", c: 1}]";
    };
    auto expected = emitted(value("'LONG'"));
    const auto at = expected.find("LONG");
    ASSERT_NE(at, std::string::npos) << expected;
    expect_same(emitted(value("'x'.repeat(12e6)")), expected.replace(at, 4, plain), expression);
  }
  // Characters of two units and escapes, also where parts end.
  const std::string x(65'535, 'x');
  std::string expected;
  for (int i = 0; i < 40; ++i) expected += x + "😀" + x + "\\n" + x + R"(\ud800)";
  const std::string characters =
      R"((x => x + '\ud83d\ude00' + x + '\n' + x + '\ud800')('x'.repeat(65535)).repeat(40))";
  expect_same(emitted(characters), "1=\"" + expected + '"', "characters");
  const auto with_long = [&](const std::string& fields) { return "({" + fields + ", s: 'x'.repeat(12e6)})"; };
  const auto text = "\"s\":\"" + plain + "\"}";
  const std::vector<std::pair<std::string, std::string>> objects = {
      // The result of toJSON() is not converted again.
      {"a: {toJSON() { return new Date(0); }}", R"("a":{},)"},
      {"a: {toJSON() { return Object.assign(new Number(3), {toJSON() { return 4; }}); }}", R"("a":3,)"},
      {"a: {toJSON(key) { return {key, toJSON(key) { return 'twice'; }}; }}", R"("a":{"key":"a"},)"},
      {"a: Object(false), b: new Number(1.5), c: new String('c')", R"("a":false,"b":1.5,"c":"c",)"},
      {"a: (BigInt.prototype.toJSON = function (key) { return key == 'b' ? undefined : 'of ' + key; }, 1n), "
       "b: 2n, c: [3n]",
       R"("a":"of a","c":["of 0"],)"},
      {"a: new Proxy([1, {b: 2}], {}), c: new Proxy({d: 3}, {})", R"("a":[1,{"b":2}],"c":{"d":3},)"},
      {"a: Object.assign(new Error('e'), {b: 1}), c: new Map()", R"("a":{"b":1},"c":{},)"},
      {"get a() { delete this.b; return 1; }, b: 2", R"("a":1,)"},
      {"a: " + std::string(300, '[') + "1" + std::string(300, ']'),
       "\"a\":" + std::string(300, '[') + "1" + std::string(300, ']') + ","},
  };
  for (const auto& [fields, json] : objects) {
    expect_same(emitted(with_long(fields)), "1={" + json + text, fields);
    expect_same(emitted("[new Proxy(" + with_long(fields) + ", {})]"), "1=[{" + json + text + "]", fields);
  }
  const auto* const kCycle = "(() => { const a = {}; a.s = 'x'.repeat(12e6); a.a = a; return a; })()";
  EXPECT_THAT(emitted(kCycle), StartsWith("!TypeError: cyclic object value"));
  EXPECT_THAT(emitted(with_long("a: (delete BigInt.prototype.toJSON, 1n)")),
              StartsWith("!TypeError: BigInt"));
  EXPECT_THAT(emitted(with_long("get a() { throw 7; }")), StartsWith("!7"));
  EXPECT_THAT(emitted("['x'.repeat(12e6), 'x'.repeat(12e6)]"), HasSubstr("more than"));
}

TEST_F(JsMap, AcceptsAllCommonFormsOfFunctions) {
  for (const std::string source : {
           "function (doc) { emit(doc.a, 1); }",
           "function(doc){emit(doc.a,1)};",
           "  \n function (doc) { emit(doc.a, 1); } ; ;\n\n",
           "function named(doc) { emit(doc.a, 1); }",
           "doc => emit(doc.a, 1)",
           "(doc) => { emit(doc.a, 1); };",
           "(function (doc) { emit(doc.a, 1); })",
           "// before\nfunction (doc) { emit(doc.a, 1); } // after",
           "/* before */ function (doc) { emit(doc.a, 1); }; /* after; */ // end",
           "function ({a}) { emit(a, 1); }",
           "(function () { var one = 1; return function (doc) { emit(doc.a, one); }; })()",
           "function (doc) { emit(doc.a, helper()); }\nfunction helper() { return 1; }",
       }) {
    EXPECT_EQ(map_one(pool_, source, R"({"a":7})"), "7=1") << source;
  }
}

TEST_F(JsMap, ASourceThatIsNotAFunctionFailsForEveryDocumentAndAffectsNoOther) {
  const auto result = map_all(
      pool_, {"1 + 1", "doc => emit(1)", "function (doc) {\n  emit(doc.;\n}", "", "throw new Error('early')"},
      {"{}", "{}"});
  ASSERT_EQ(result.documents(), 2u);
  for (std::size_t document : {0u, 1u}) {
    for (std::size_t function : {0u, 2u, 3u, 4u}) {
      ASSERT_NE(result.failure(document, function), nullptr);
      EXPECT_EQ(result.failure(document, function)->kind, FailureKind::compilation);
    }
    EXPECT_EQ(shown(result, document, 0), "!Expression does not eval to a function.");
    EXPECT_EQ(shown(result, document, 1), "1=null");
    EXPECT_THAT(shown(result, document, 2), StartsWith("!SyntaxError: "));
    EXPECT_THAT(shown(result, document, 2), HasSubstr("(line 2)"));
  }
}

TEST_F(JsMap, EveryFunctionSeesEveryDocument) {
  const auto result =
      map_all(pool_, {"d => emit(d.a)", "d => { if (d.a > 1) { emit(d.a, 1); emit(d.a, 2); } }"},
              {R"({"a":1})", R"({"a":2})", R"({"a":"x"})"});
  ASSERT_EQ(result.documents(), 3u);
  ASSERT_EQ(result.functions(), 2u);
  EXPECT_EQ(shown(result, 0, 0), "1=null");
  EXPECT_EQ(shown(result, 0, 1), "");
  EXPECT_EQ(shown(result, 1, 0), "2=null");
  EXPECT_EQ(shown(result, 1, 1), "2=1 2=2");
  EXPECT_EQ(shown(result, 2, 0), R"("x"=null)");
}

TEST_F(JsMap, AnEmptyBatchOrProgramIsValid) {
  EXPECT_EQ(map_all(pool_, {"d => emit(1)"}, {}).documents(), 0u);
  EXPECT_EQ(pool_.stats().started, 0u);
  EXPECT_EQ(map_all(pool_, {}, {"{}", "{}"}).documents(), 2u);
}

TEST_F(JsMap, EmittedObjectsAreWrittenWhenTheFunctionReturns) {
  EXPECT_EQ(map_one(pool_, "doc => { var o = {n: 1}; emit(1, o); o.n = 2; emit(2, o); }"),
            R"(1={"n":2} 2={"n":2})");
}

TEST_F(JsMap, AFunctionThatThrowsLosesItsEmitsForThatDocumentOnly) {
  const auto result =
      map_all(pool_, {"function (doc) {\n  emit(0, 0);\n  emit(doc.a.b, 1);\n}", "doc => emit('other')"},
              {R"({"a":{"b":1}})", R"({"b":1})", R"({"a":{"b":3}})"});
  EXPECT_EQ(shown(result, 0, 0), "0=0 1=1");
  ASSERT_NE(result.failure(1, 0), nullptr);
  EXPECT_EQ(result.failure(1, 0)->kind, FailureKind::exception);
  EXPECT_EQ(result.failure(1, 0)->message, "TypeError: doc.a is undefined (line 3)");
  EXPECT_TRUE(result.emitted(1, 0).empty());
  EXPECT_EQ(shown(result, 2, 0), "0=0 3=1");
  for (std::size_t document : {0u, 1u, 2u}) EXPECT_EQ(shown(result, document, 1), R"("other"=null)");
}

TEST_F(JsMap, AnythingCanBeThrown) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"throw 'text'", "!text (line 1)"},
      {"throw 17", "!17 (line 1)"},
      {"throw null", "!null (line 1)"},
      {"throw {forbidden: 'no'}", R"(!{"forbidden":"no"} (line 1))"},
      {"throw new RangeError('far')", "!RangeError: far (line 1)"},
      {"throw Object.create(null)", "!{} (line 1)"},
      {"throw {toJSON() { throw 1; }}", "!an exception that cannot be converted to text (line 1)"},
      {"throw {get a() { throw 1; }}", "!an exception that cannot be converted to text (line 1)"},
      {"throw new Proxy({}, {get() { throw 1; }, ownKeys() { throw 2; }})",
       "!an exception that cannot be converted to text (line 1)"},
      {"emit({toJSON() { throw new Error('in toJSON'); }})", "!Error: in toJSON (line 1)"},
      {"emit(1, {get a() { throw new Error('in getter'); }})", "!Error: in getter (line 1)"},
      {"var a = []; a[0] = a; emit(a)", "!TypeError: cyclic object value"},
      {"emit(1n)", "!TypeError: BigInt value can't be serialized in JSON"},
      {"Promise.resolve().then(() => emit(1))",
       "!Error: promises and async functions are not supported (line 1)"},
  };
  for (const auto& [body, failure] : cases) {
    EXPECT_EQ(map_one(pool_, "doc => { emit(0); " + body + " }"), failure) << body;
  }
}

TEST_F(JsMap, LongMessagesAreCutBetweenCharacters) {
  const auto message = map_one(pool_, "doc => { throw new Error('ä'.repeat(1e6)); }");
  EXPECT_LT(message.size(), 1100u);
  EXPECT_THAT(message, StartsWith("!Error: ää"));
  EXPECT_THAT(message, testing::EndsWith("ä (line 1)"));
  const auto text = map_one(pool_, "doc => { throw 'x' + 'ä'.repeat(1e6); }");
  EXPECT_LT(text.size(), 1100u);
  EXPECT_THAT(text, testing::EndsWith("ä (line 1)"));
}

TEST_F(JsMap, TheDocumentIsFrozenForAllFunctions) {
  const auto result = map_all(pool_,
                              {"function (doc) { doc.n = 2; doc.new = 1; delete doc.gone; doc.list[0] = 9;"
                               "  doc.deep.er.x = 1; emit(1, doc); }",
                               "function (doc) { 'use strict'; doc.n = 3; emit(2, doc); }",
                               "function (doc) { doc.list.push(4); emit(3, doc); }",  //
                               "doc => emit(4, doc)"},
                              {R"({"n":1,"gone":0,"list":[1,{}],"deep":{"er":{}}})"});
  const std::string document = R"({"n":1,"gone":0,"list":[1,{}],"deep":{"er":{}}})";
  EXPECT_EQ(shown(result, 0, 0), "1=" + document);
  EXPECT_THAT(shown(result, 0, 1), StartsWith("!TypeError: "));
  EXPECT_THAT(shown(result, 0, 2), StartsWith("!TypeError: "));
  EXPECT_EQ(shown(result, 0, 3), "4=" + document);
}

TEST_F(JsMap, HelpersAreThoseOfCouchDb) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"sum([1, 2, 3.5])", "6.5"},
      {"sum([])", "0"},
      {"sum({a: 1, b: 2})", "3"},
      {"isArray([])", "true"},
      {"isArray({length: 0})", "false"},
      {"toJSON({a: [1]})", R"("{\"a\":[1]}")"},
      {"typeof JSON.parse", R"("function")"},
      {"emit(0)", "null"},
      {"log(0)", "null"},
  };
  for (const auto& [expression, json] : cases) {
    EXPECT_THAT(map_one(pool_, "doc => { emit(" + expression + "); }"), testing::EndsWith(json + "=null"))
        << expression;
  }
}

TEST_F(JsMap, NoHostObjectsAndTimeIsUtc) {
  for (const std::string name : {"require", "load", "read", "readline", "print", "quit", "system", "os",
                                 "evalcx", "setTimeout", "fetch", "XMLHttpRequest", "WebAssembly",
                                 "SharedArrayBuffer", "Atomics", "console", "process", "importScripts"}) {
    EXPECT_EQ(map_one(pool_, "doc => emit(typeof " + name + ")"), "\"undefined\"=null") << name;
  }
  EXPECT_EQ(map_one(pool_, "doc => emit(new Date(2020, 6, 1).getTime(), new Date(0).getTimezoneOffset())"),
            "1593561600000=0");
}

TEST_F(JsMap, InvalidJsonFailsItsDocumentOnly) {
  const auto result =
      map_all(pool_, {"doc => emit(doc)"}, {"{}", "{", "", "\xff", "7", "{\"a\":\"\xc3\x28\"}"});
  ASSERT_EQ(result.documents(), 6u);
  EXPECT_EQ(shown(result, 0, 0), "{}=null");
  for (std::size_t document : {1u, 2u, 3u, 5u}) EXPECT_NE(result.failure(document, 0), nullptr) << document;
  EXPECT_EQ(shown(result, 4, 0), "7=null");
}

TEST_F(JsMap, EmitWorksOnlyWhileTheFunctionRuns) {
  const auto result =
      map_all(pool_, {"(emit('at load'), function (doc) { emit({toJSON() { emit('late'); return 1; }}); })"},
              {"{}", "{}"});
  EXPECT_EQ(shown(result, 0, 0), "1=null");
  EXPECT_EQ(shown(result, 1, 0), "1=null");
}

TEST_F(JsMap, ProgramsDoNotShareGlobals) {
  // The first program breaks its own globals only, not those of the protocol.
  const auto wrecked =
      map_all(pool_,
              {"doc => { emit(1); JSON.stringify = () => 'x'; JSON = null; Array.prototype.push = null;"
               "  Object.prototype.toJSON = () => 'wrecked'; Object.defineProperty(Array.prototype, 0, "
               "{set() { throw 1; }});"
               "  String.prototype.toString = null; emit = log = sum = undefined; leak = 1; emitted = 2; }",
               "doc => { this.own = (this.own || 0) + 1; }"},
              {R"({"a":[1]})", R"({"a":[1]})"});
  EXPECT_EQ(shown(wrecked, 0, 0), "1=null");
  EXPECT_THAT(shown(wrecked, 1, 0), StartsWith("!TypeError: emit is not a function"));
  EXPECT_EQ(map_one(pool_, "doc => emit([typeof leak, typeof own, toJSON(doc), sum([1, 2])], doc)",
                    R"({"a":[1,{}]})"),
            R"(["undefined","undefined","{\"a\":[1,{}]}",3]={"a":[1,{}]})");
}

TEST_F(JsMap, LogLinesComeBackWithTheirFunction) {
  std::vector<std::string> lines;
  auto options = test_options();
  options.log = [&](const Function& function, std::string_view line) {
    lines.push_back(function.name + ": " + std::string(line));
  };
  Pool pool(options, clock_);
  map_all(pool, {"doc => log('from ' + doc.n)", "doc => { log({a: [1]}); log('x'.repeat(5000)); throw 1; }"},
          {R"({"n":1})", R"({"n":2})"});
  const std::string cut = "f1: " + std::string(protocol::kMaxMessage, 'x');
  EXPECT_THAT(lines,
              ElementsAre("f0: from 1", R"(f1: {"a":[1]})", cut, "f0: from 2", R"(f1: {"a":[1]})", cut));
}

TEST_F(JsMap, ControlCharactersInLogLinesAreEscaped) {
  std::vector<std::string> lines;
  auto options = test_options();
  options.log = [&](const Function&, std::string_view line) { lines.emplace_back(line); };
  Pool pool(options, clock_);
  map_one(pool, R"(doc => { log('a\n[info] b\r\x1b[2J\0\x7f\tä'); throw 'c\nd'; })");
  EXPECT_THAT(lines, ElementsAre(R"(a\n[info] b\x0d\x1b[2J\x00\x7f ä)"));
  EXPECT_EQ(map_one(pool, R"(doc => { throw 'c\nd'; })"), R"(!c\nd (line 1))");
}

TEST_F(JsMap, LogLinesAreRateLimited) {
  ManualClock clock;
  std::vector<std::string> lines;
  auto options = test_options();
  options.log_lines = 5;
  options.log = [&](const Function& function, std::string_view line) {
    lines.push_back(function.owner.design_document + ": " + std::string(line));
  };
  Pool pool(options, clock);
  const auto run = [&](const std::string& design, const std::string& body) {
    auto program = program_of({"doc => { " + body + " }"});
    program.functions[0].owner = {"db", 1, design};
    const std::vector<std::string_view> documents = {"{}"};
    pool.map(program, documents);
  };
  run("a", "for (var i = 0; i < 250; i++) log(i);");
  ASSERT_EQ(lines.size(), 100u);  // the limit of one response, and the size of the bucket
  EXPECT_EQ(lines[99], "a: 99");
  run("a", "log('not now');");
  ASSERT_EQ(lines.size(), 100u);
  run("b", "log('other');");
  EXPECT_EQ(lines.back(), "b: other");
  clock.advance(std::chrono::milliseconds(200));
  run("a", "log('now');");
  ASSERT_EQ(lines.size(), 103u);
  EXPECT_EQ(lines[101], "a: ... (151 lines dropped)");
  EXPECT_EQ(lines[102], "a: now");
}

TEST_F(JsMap, EqualFunctionsOfTwoDatabasesDoNotShareState) {
  auto program =
      program_of({"function (doc) { seen = this.seen || []; seen.push(doc._id); emit(seen); }",
                  "(function () { var last; return function (doc) { emit(last); last = doc._id; }; })()",
                  "function (doc) { Array.prototype.leak = doc._id; /x/.test('x'); emit([].leak); }"});
  program.root = R"({"views":{"lib":{"m":"exports.count = 0;"}}})";
  const auto keys_of = [&](std::int64_t database, std::string_view document) {
    for (auto& function : program.functions) function.owner.number = database;
    const std::vector<std::string_view> documents = {document};
    const auto result = pool_.map(program, documents);
    return shown(result, 0, 0) + " " + shown(result, 0, 1);
  };
  EXPECT_EQ(keys_of(1, R"({"_id":"a"})"), R"(["a"]=null null=null)");
  EXPECT_EQ(keys_of(2, R"({"_id":"b"})"), R"(["b"]=null null=null)");
  EXPECT_EQ(keys_of(1, R"({"_id":"c"})"), R"(["a","c"]=null "a"=null)");
  // The same holds for reduce functions.
  const std::vector<ReduceGroup> groups(1);
  const auto count = [&](std::int64_t database) {
    const Function function{"r", "() => { n = (this.n || 0) + 1; return n; }", {"db", database, "_design/d"}};
    return std::get<std::string>(pool_.reduce(function, false, groups)[0]);
  };
  EXPECT_EQ(count(1), "1");
  EXPECT_EQ(count(2), "1");
  EXPECT_EQ(count(1), "2");
  EXPECT_EQ(pool_.stats().started, 1u);
}

// Exactly the names of the language and of CouchDB.
TEST_F(JsMap, TheGlobalObjectHoldsTheseNames) {
  const std::string source =
      "doc => emit(Object.getOwnPropertyNames(globalThis).filter(n => !doc.known.includes(n)).sort())";
  const std::string known =
      R"({"known":["AggregateError","Array","ArrayBuffer","BigInt","BigInt64Array","BigUint64Array","Boolean",)"
      R"("DataView","Date","Error","EvalError","FinalizationRegistry","Float32Array","Float64Array","Function",)"
      R"("Infinity","Int16Array","Int32Array","Int8Array","InternalError","Intl","JSON","Map","Math","NaN",)"
      R"("Number","Object","Promise","Proxy","RangeError","ReferenceError","Reflect","RegExp","Set","String",)"
      R"("Symbol","SyntaxError","TypeError","URIError","Uint16Array","Uint32Array","Uint8Array",)"
      R"("Uint8ClampedArray","WeakMap","WeakRef","WeakSet","decodeURI","decodeURIComponent","encodeURI",)"
      R"("encodeURIComponent","escape","eval","globalThis","isFinite","isNaN","parseFloat","parseInt",)"
      R"("undefined","unescape","emit","log","sum","isArray","toJSON","st_index","index","job"]})";
  EXPECT_EQ(map_one(pool_, source, known), "[]=null");
}

TEST_F(JsMap, TheOutputOfOneCallIsLimited) {
  const auto count = [](const MapResult& result) { return result.emitted(0, 0).size(); };
  const auto emits = [&](std::size_t number) {
    return map_all(pool_, {"doc => { for (var i = 0; i < " + std::to_string(number) + "; i++) emit(i); }"},
                   {"{}"});
  };
  EXPECT_EQ(count(emits(protocol::kMaxEmits)), protocol::kMaxEmits);
  const auto too_many = emits(protocol::kMaxEmits + 1);
  ASSERT_NE(too_many.failure(0, 0), nullptr);
  EXPECT_EQ(too_many.failure(0, 0)->kind, FailureKind::too_large);
  // 15 MiB, and 17.
  const auto mebibytes = [&](int number) {
    return map_all(
        pool_,
        {"doc => { for (var i = 0; i < " + std::to_string(number) + "; i++) emit(i, 'x'.repeat(1 << 20)); }",
         "doc => emit('other')"},
        {"{}"});
  };
  EXPECT_EQ(count(mebibytes(15)), 15u);
  const auto too_long = mebibytes(17);
  ASSERT_NE(too_long.failure(0, 0), nullptr);
  EXPECT_EQ(too_long.failure(0, 0)->kind, FailureKind::too_large);
  EXPECT_EQ(shown(too_long, 0, 1), "\"other\"=null");
}

TEST_F(JsMap, OutputOfTheFirstDocumentThatDoesNotFitFails) {
  const std::string much = "doc => { for (var i = 0; i < 15; i++) emit(i, 'x'.repeat(1 << 20)); }";
  const auto result = map_all(pool_, {much, much, much, much, "doc => emit(1)"}, {"{}", "{}"});
  ASSERT_EQ(result.documents(), 1u);
  for (std::size_t function : {0u, 1u, 2u}) EXPECT_EQ(result.emitted(0, function).size(), 15u);
  for (std::size_t function : {3u, 4u}) {
    ASSERT_NE(result.failure(0, function), nullptr);
    EXPECT_EQ(result.failure(0, function)->kind, FailureKind::too_large);
  }
}

TEST_F(JsMap, ABatchThatEmitsMuchIsSplit) {
  const std::vector<std::string_view> documents(9, R"({"a":1})");
  const auto program = program_of({"doc => { for (var i = 0; i < 10; i++) emit(i, 'x'.repeat(1e6)); }"});
  std::size_t done = 0;
  int parts = 0;
  while (done < documents.size()) {
    const auto result = pool_.map(program, std::span(documents).subspan(done));
    ASSERT_GE(result.documents(), 1u);
    for (std::size_t i = 0; i < result.documents(); ++i) ASSERT_EQ(result.emitted(i, 0).size(), 10u);
    done += result.documents();
    ++parts;
  }
  EXPECT_EQ(done, documents.size());
  EXPECT_EQ(parts, 3);  // of 4, 4 and 1 documents: a response is full from 32 MiB on
}

TEST_F(JsMap, ABatchWhoseTimeIsUpIsSplit) {
  const std::vector<std::string_view> documents(5, "{}");
  const auto program =
      program_of({"doc => { const end = Date.now() + 300; while (Date.now() < end) {} emit(1); }"});
  Limits limits;
  limits.batch = std::chrono::milliseconds(50);
  const auto result = pool_.map(program, documents, limits);
  EXPECT_GE(result.documents(), 1u);
  EXPECT_LT(result.documents(), 5u);
  for (std::size_t i = 0; i < result.documents(); ++i) EXPECT_EQ(shown(result, i, 0), "1=null");
}

boost::json::value any_json(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0: return nullptr;
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::inRange<std::int64_t>(-(std::int64_t{1} << 53), std::int64_t{1} << 53);
    case 3: return boost::json::string(*rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)));
    case 4: return boost::json::string("ä€😀 \"\\\n\x01");
    case 5: {
      boost::json::array array;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) array.push_back(any_json(depth - 1));
      return array;
    }
    default: {
      boost::json::object object;
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
        object["m" + std::to_string(*rc::gen::inRange(0, 99))] = any_json(depth - 1);
      }
      return object;
    }
  }
}

TEST_F(JsMap, DocumentsRoundTrip) {
  EXPECT_TRUE(rc::check([&] {
    boost::json::object document;
    document["value"] = any_json(3);
    const auto text = boost::json::serialize(document);
    const auto result = map_all(pool_, {"doc => emit(doc.value, doc)"}, {text});
    RC_ASSERT(result.emitted(0, 0).size() == 1u);
    RC_ASSERT(boost::json::parse(std::string(result.emitted(0, 0)[0].key)) == document["value"]);
    RC_ASSERT(boost::json::parse(std::string(result.emitted(0, 0)[0].value)) == document);
  }));
}

}  // namespace
}  // namespace divan::js
