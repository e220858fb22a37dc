#include "divan/index/views/views_testing.h"

#include <fmt/core.h>

#include <utility>

#include "divan/index/unused.h"

namespace divan::index::views {
namespace {

using Views = testing::ViewsFixture;
using ::testing::HasSubstr;

TEST_F(Views, RowsComeInTheOrderOfTheirKeys) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.k, doc.n); }"}})");
  put(R"({"_id":"1","k":"b","n":1})");
  put(R"({"_id":"2","k":[1],"n":2})");
  put(R"({"_id":"3","k":"B","n":3})");
  put(R"({"_id":"4","k":10,"n":4})");
  put(R"({"_id":"5","k":9.5,"n":5})");
  put(R"({"_id":"6","n":6})");
  build();
  EXPECT_EQ(
      query("v"),
      R"({"total_rows":6,"offset":0,"rows":[{"id":"6","key":null,"value":6},{"id":"5","key":9.5,"value":5},)"
      R"({"id":"4","key":10,"value":4},{"id":"1","key":"b","value":1},{"id":"3","key":"B","value":3},)"
      R"({"id":"2","key":[1],"value":2}]})");
}

TEST_F(Views, RawCollationIsAnOptionOfEachView) {
  put_design(
      R"({"raw":{"map":"function(doc) { emit(doc.k, null); }","reduce":"_count","options":{"collation":"raw"}},)"
      R"("v":{"map":"function(doc) { emit(doc.k, null); }"}})");
  int id = 0;
  for (const auto* key : {R"("b")", R"(["b",1])", R"("B")", R"(["a"])", "true", R"({"a":1})", "2", "null",
                          "false", R"(["b",2])"}) {
    put(fmt::format(R"({{"_id":"{}","k":{}}})", ++id, key));
  }
  build();
  const auto keys = [&](std::string_view view,
                        const std::vector<std::pair<std::string, std::string>>& params) {
    std::string found;
    const std::string result = query(view, params);
    json::for_each_element(*json::member(result, "rows"), [&](std::string_view row) {
      found += std::string(*json::member(row, "key")) + ' ';
      return true;
    });
    return found;
  };
  const std::pair<std::string, std::string> no_reduce{"reduce", "false"};
  EXPECT_EQ(keys("v", {}), R"(null false true 2 "b" "B" ["a"] ["b",1] ["b",2] {"a":1} )");
  EXPECT_EQ(keys("raw", {no_reduce}), R"(2 false null true {"a":1} ["a"] ["b",1] ["b",2] "B" "b" )");
  EXPECT_EQ(keys("raw", {no_reduce, {"start_key", "null"}, {"end_key", R"(["a"])"}}),
            R"(null true {"a":1} ["a"] )");
  EXPECT_EQ(keys("raw", {no_reduce, {"keys", R"(["B",2])"}}), R"("B" 2 )");
  EXPECT_EQ(keys("raw", {{"group_level", "1"}, {"start_key", "{}"}}), R"({"a":1} ["a"] ["b"] "B" "b" )");
  // Contradictions are judged by the view's own order.
  EXPECT_EQ(keys("raw", {no_reduce, {"start_key", "\"B\""}, {"end_key", "\"b\""}}), R"("B" "b" )");
  EXPECT_THAT(error_of([&] {
                keys("v", {{"start_key", "\"B\""}, {"end_key", "\"b\""}});
              }),
              HasSubstr("No rows can match your key range"));
}

TEST_F(Views, RangesKeysAndLimits) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.k, null); }"}})");
  for (int i = 0; i < 6; ++i) put(fmt::format(R"({{"_id":"{}","k":{}}})", i, i / 2));
  build();
  const auto ids = [&](const std::vector<std::pair<std::string, std::string>>& params) {
    std::string found;
    const std::string result = query("v", params);
    json::for_each_element(*json::member(result, "rows"), [&](std::string_view row) {
      found += json::member(row, "id")->substr(1, 1);
      return true;
    });
    return found;
  };
  EXPECT_EQ(ids({}), "012345");
  EXPECT_EQ(ids({{"descending", "true"}}), "543210");
  EXPECT_EQ(ids({{"key", "1"}}), "23");
  EXPECT_EQ(ids({{"keys", "[2,0,7]"}}), "4501");
  EXPECT_EQ(ids({{"keys", "[2,0,7]"}, {"descending", "true"}}), "1054");
  EXPECT_EQ(ids({{"keys", "[2,0,1]"}, {"descending", "true"}, {"skip", "1"}, {"limit", "2"}}), "21");
  EXPECT_EQ(ids({{"startkey", "1"}}), "2345");
  EXPECT_EQ(ids({{"start_key", "1"}, {"end_key", "1"}}), "23");
  EXPECT_EQ(ids({{"endkey", "1"}, {"inclusive_end", "false"}}), "01");
  EXPECT_EQ(ids({{"startkey", "1"}, {"startkey_docid", "3"}}), "345");
  EXPECT_EQ(ids({{"endkey", "1"}, {"endkey_docid", "2"}}), "012");
  EXPECT_EQ(ids({{"startkey", "2"}, {"endkey", "1"}, {"descending", "true"}}), "5432");
  EXPECT_EQ(ids({{"startkey", "2"}, {"endkey", "0"}, {"inclusive_end", "false"}, {"descending", "true"}}),
            "5432");
  EXPECT_EQ(ids({{"skip", "1"}, {"limit", "2"}}), "12");
  EXPECT_EQ(ids({{"limit", "0"}}), "");
  EXPECT_EQ(ids({{"startkey", "7"}}), "");
}

TEST_F(Views, UpdatesAndDeletionsRemoveOldRows) {
  put_design(
      R"({"v":{"map":"function(doc) { for (var i = 0; i < doc.n; i++) emit(i, doc.n); }","reduce":"_count"}})");
  auto rev = put(R"({"_id":"a","n":3})");
  put(R"({"_id":"b","n":1})");
  build();
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":4}]})");
  rev = put(R"({"_id":"a","n":1,"_rev":")" + rev + "\"}");
  build();
  EXPECT_EQ(
      query("v", {{"reduce", "false"}}),
      R"({"total_rows":2,"offset":0,"rows":[{"id":"a","key":0,"value":1},{"id":"b","key":0,"value":1}]})");
  put(R"({"_id":"a","_deleted":true,"_rev":")" + rev + "\"}");
  build();
  EXPECT_EQ(query("v", {{"reduce", "false"}}),
            R"({"total_rows":1,"offset":0,"rows":[{"id":"b","key":0,"value":1}]})");
}

TEST_F(Views, EqualKeysOfOneDocumentAreSeparateRows) {
  put_design(
      R"({"v":{"map":"function(doc) { doc.values.forEach(function(v, i) { emit(i % 2 ? 1 : 1.0, v); }); }"}})");
  const auto values = [&] {
    std::string found;
    const std::string result = query("v");
    json::for_each_element(*json::member(result, "rows"), [&](std::string_view row) {
      EXPECT_EQ(json::member(row, "key"), "1");
      found += std::string(*json::member(row, "value")) + ' ';
      return true;
    });
    return found;
  };
  // In the order of their values, as Erlang sorts terms, whatever the order of their emission.
  auto rev = put(R"({"_id":"a","values":["b","a","B",true,{"a":1},[1],[],null,10,9,false,"a"]})");
  build();
  EXPECT_EQ(values(), R"(9 10 false null true {"a":1} [] [1] "B" "a" "a" "b" )");
  rev = put(R"({"_id":"a","values":["y","x"],"_rev":")" + rev + "\"}");
  build();
  EXPECT_EQ(values(), R"("x" "y" )");
  rev = put(R"({"_id":"a","values":["x","y"],"_rev":")" + rev + "\"}");
  build();
  EXPECT_EQ(values(), R"("x" "y" )");
  put(R"({"_id":"a","_deleted":true,"_rev":")" + rev + "\"}");
  build();
  EXPECT_EQ(query("v"), R"({"total_rows":0,"offset":0,"rows":[]})");
}

TEST_F(Views, LargeValuesAndManyRows) {
  put_design(
      R"({"large":{"map":"function(doc) { if (doc.large) emit(doc._id, new Array(250001).join('x') + doc._id); }"},)"
      R"("many":{"map":"function(doc) { if (doc.many) for (var i = 0; i < doc.many; i++) emit(i, 'some value of ' + i); }"}})");
  put(R"({"_id":"l1","large":true})");
  put(R"({"_id":"l2","large":true})");
  const auto rev = put(R"({"_id":"m","many":12000})");
  build();
  for (const auto& descending : {"false", "true"}) {
    const std::string result = query("large", {{"descending", descending}});
    EXPECT_EQ(result.size(), 500'108u);
    EXPECT_NE(result.find("xxl1\""), std::string::npos);
    EXPECT_NE(result.find("xxl2\""), std::string::npos);
    int expected = *descending == 't' ? 11'999 : 0;
    const std::string many = query("many", {{"descending", descending}});
    json::for_each_element(*json::member(many, "rows"), [&](std::string_view row) {
      EXPECT_EQ(json::member(row, "key"), std::to_string(expected));
      expected += *descending == 't' ? -1 : 1;
      return true;
    });
    EXPECT_EQ(expected, *descending == 't' ? -1 : 12'000);
  }
  put(R"({"_id":"m","many":1,"_rev":")" + rev + "\"}");
  build();
  EXPECT_EQ(query("many"),
            R"({"total_rows":1,"offset":0,"rows":[{"id":"m","key":0,"value":"some value of 0"}]})");
}

TEST_F(Views, LongKeysAndManyRowsAreSupported) {
  put_design(
      R"({"v":{"map":"function(doc) { emit(doc._id, 1); if (doc.bad) emit(new Array(20000).join('y'), 2); if (doc.huge) for (var i = 0; i < 100; i++) emit(i, new Array(100000).join('z')); }"},)"
      R"("w":{"map":"function(doc) { emit(1); }","reduce":"_count"},"a":{"map":"function(doc) { emit(1); }","reduce":"_count"}})");
  put(R"({"_id":"a","bad":true})");
  put(R"({"_id":"b"})");
  put(R"({"_id":"c","huge":true})");
  build();
  EXPECT_THAT(query("v", {{"limit", "0"}}), HasSubstr(R"("total_rows":104)"));
  EXPECT_THAT(query("v", {{"start_key", R"("yyyyyyy")"}, {"limit", "1"}}),
              HasSubstr(R"("id":"a","key":"yyyyyyyyy)"));
  EXPECT_EQ(query("w"), R"({"rows":[{"key":null,"value":3}]})");
  EXPECT_EQ(query("a"), R"({"rows":[{"key":null,"value":3}]})");
}

TEST_F(Views, ReducesAndGroups) {
  put_design(
      R"({"count":{"map":"function(doc) { emit([doc.a, doc.b], doc.n); }","reduce":"_count"},)"
      R"("stats":{"map":"function(doc) { emit(doc.a, doc.n); }","reduce":"_stats"},)"
      R"("js":{"map":"function(doc) { emit([doc.a, doc.b], doc.n); }","reduce":"function(keys, values, rereduce) { return sum(values) * (rereduce ? 1 : 1); }"}})");
  for (int i = 0; i < 12; ++i)
    put(fmt::format(R"({{"_id":"{:02}","a":{},"b":{},"n":{}}})", i, i / 6, i / 3, i));
  build();
  EXPECT_EQ(query("count"), R"({"rows":[{"key":null,"value":12}]})");
  EXPECT_EQ(query("count", {{"group_level", "1"}}),
            R"({"rows":[{"key":[0],"value":6},{"key":[1],"value":6}]})");
  EXPECT_EQ(query("count", {{"group", "true"}, {"skip", "1"}, {"limit", "2"}}),
            R"({"rows":[{"key":[0,1],"value":3},{"key":[1,2],"value":3}]})");
  EXPECT_EQ(query("js", {{"group_level", "1"}}),
            R"({"rows":[{"key":[0],"value":15},{"key":[1],"value":51}]})");
  EXPECT_EQ(query("js", {{"group", "true"}, {"descending", "true"}, {"limit", "1"}}),
            R"({"rows":[{"key":[1,3],"value":30}]})");
  EXPECT_EQ(query("js"), R"({"rows":[{"key":null,"value":66}]})");
  EXPECT_EQ(query("js", {{"startkey", "[0,1]"}, {"endkey", "[1,2]"}}),
            R"({"rows":[{"key":null,"value":33}]})");
  EXPECT_EQ(query("js", {{"keys", "[[0,1],[0,1],[9]]"}, {"group", "true"}}),
            R"({"rows":[{"key":[0,1],"value":12},{"key":[0,1],"value":12}]})");
  EXPECT_EQ(query("stats", {{"key", "1"}}),
            R"({"rows":[{"key":null,"value":{"sum":51,"count":6,"min":6,"max":11,"sumsqr":451}}]})");
  EXPECT_EQ(query("count", {{"key", "5"}}), R"({"rows":[]})");
}

TEST_F(Views, ALargeGroupIsReducedInParts) {
  put_design(
      R"({"v":{"map":"function(doc) { for (var i = 0; i < 2500; i++) emit(i % 2, 1); }","reduce":"function(k, v, r) { return {n: r ? sum(v.map(function(x) { return x.n; })) : v.length, re: r}; }"}})");
  put(R"({"_id":"a"})");
  build();
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":{"n":2500,"re":true}}]})");
  EXPECT_EQ(query("v", {{"group", "true"}}),
            R"({"rows":[{"key":0,"value":{"n":1250,"re":true}},{"key":1,"value":{"n":1250,"re":true}}]})");
}

TEST_F(Views, IncludeDocsFollowsLinks) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc._id, doc.to ? {_id: doc.to} : null); }"}})");
  const auto rev = put(R"({"_id":"a","to":"b"})");
  const auto rev_b = put(R"({"_id":"b","x":1})");
  put(R"({"_id":"c","to":"missing"})");
  build();
  EXPECT_EQ(
      query("v", {{"include_docs", "true"}}),
      R"({"total_rows":3,"offset":0,"rows":[{"id":"a","key":"a","value":{"_id":"b"},"doc":{"_id":"b","_rev":")" +
          rev_b + R"(","x":1}},{"id":"b","key":"b","value":null,"doc":{"_id":"b","_rev":")" + rev_b +
          R"(","x":1}},{"id":"c","key":"c","value":{"_id":"missing"},"doc":null}]})");
}

TEST_F(Views, AValueWithAnInvalidIdShowsNoDocument) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc._id, {_id: doc.to}); }"}})");
  for (const auto* to : {"5", "null", R"(["b"])", "{}"}) put(fmt::format(R"({{"to":{}}})", to));
  build();
  const std::string result = query("v", {{"include_docs", "true"}});
  std::size_t rows = 0;
  json::for_each_element(*json::member(result, "rows"), [&](std::string_view row) {
    EXPECT_EQ(json::member(row, "doc"), "null") << row;
    return ++rows > 0;
  });
  EXPECT_EQ(rows, 4u);
}

TEST_F(Views, AFunctionThatThrowsLosesOnlyItsOwnRows) {
  put_design(
      R"({"bad":{"map":"function(doc) { emit(1, 1); if (doc.bad) throw 'no'; }"},"good":{"map":"function(doc) { emit(2, 2); }"}})");
  put(R"({"_id":"a","bad":true})");
  put(R"({"_id":"b"})");
  build();
  EXPECT_EQ(query("bad"), R"({"total_rows":1,"offset":0,"rows":[{"id":"b","key":1,"value":1}]})");
  EXPECT_EQ(
      query("good"),
      R"({"total_rows":2,"offset":0,"rows":[{"id":"a","key":2,"value":2},{"id":"b","key":2,"value":2}]})");
}

TEST_F(Views, DesignDocumentsAreCheckedAndEqualOnesShareAnIndex) {
  const auto check = [&](std::string_view body) {
    return error_of([&] { ViewKind(pool).check("_design/d", body, {}); });
  };
  EXPECT_EQ(check(R"({"views":{"v":{"map":"function(doc) { emit(1); }","reduce":"_sum"}}})"), "no error");
  EXPECT_EQ(check(R"({"language":"erlang","views":{"v":{"map":"fun() -> ok end."}}})"), "no error");
  EXPECT_EQ(check(R"({"filters":{}})"), "no error");
  EXPECT_THAT(check(R"({"views":[]})"), HasSubstr("invalid_design_doc"));
  EXPECT_THAT(check(R"({"views":{"v":1}})"), HasSubstr("invalid_design_doc"));
  EXPECT_THAT(check(R"({"views":{"v":{"map":1}}})"), HasSubstr("invalid_design_doc"));
  EXPECT_THAT(check(R"({"views":{"v":{"reduce":"_sum"}}})"), HasSubstr("invalid_design_doc"));
  EXPECT_THAT(check(R"({"language":1,"views":{}})"), HasSubstr("invalid_design_doc"));
  EXPECT_THAT(check(R"({"views":{"v":{"map":"function(doc) {"}}})"), HasSubstr("compilation_error"));
  EXPECT_THAT(check(R"({"views":{"v":{"map":"function(doc) {}","reduce":"_zing"}}})"),
              HasSubstr("is not a supported reduce function"));
  const auto signature = [&](std::string_view id, std::string_view views) {
    return parse_views(std::string(id), R"({"views":)" + std::string(views) + "}", pool, {})->signature();
  };
  EXPECT_EQ(signature("_design/a", R"({"x":{"map":"f"},"y":{"map":"g"}})"),
            signature("_design/b", R"({"y":{"map":"g"},"x":{"map":"f"}})"));
  EXPECT_NE(signature("_design/a", R"({"x":{"map":"f"}})"), signature("_design/a", R"({"x":{"map":"g"}})"));
}

TEST_F(Views, ContradictoryParametersAreRejected) {
  put_design(
      R"({"m":{"map":"function(doc) { emit(1, 1); }"},"r":{"map":"function(doc) { emit(1, 1); }","reduce":"_sum"}})");
  const auto reason = [&](std::string_view view,
                          const std::vector<std::pair<std::string, std::string>>& params) {
    return error_of([&] { query(view, params); });
  };
  EXPECT_THAT(reason("m", {{"reduce", "true"}}),
              HasSubstr("query_parse_error: Reduce is invalid for map-only views."));
  EXPECT_THAT(reason("m", {{"group", "true"}}), HasSubstr("query_parse_error"));
  EXPECT_THAT(reason("r", {{"include_docs", "true"}}), HasSubstr("`include_docs` is invalid for reduce"));
  EXPECT_THAT(reason("r", {{"keys", "[1,2]"}}), HasSubstr("must use `group=true`"));
  EXPECT_THAT(reason("m", {{"keys", "[1,2]"}, {"key", "1"}}), HasSubstr("incompatible"));
  EXPECT_THAT(reason("m", {{"startkey", "2"}, {"endkey", "1"}}),
              HasSubstr("No rows can match your key range"));
  EXPECT_THAT(reason("m", {{"limit", "x"}}), HasSubstr("query_parse_error: Invalid value for integer"));
  EXPECT_THAT(reason("m", {{"skip", "-1"}}), HasSubstr("Invalid value for positive integer"));
  EXPECT_THAT(reason("m", {{"descending", "maybe"}}), HasSubstr("Invalid boolean parameter"));
  EXPECT_THAT(reason("m", {{"key", "{"}}), HasSubstr("invalid UTF-8 JSON"));
  EXPECT_THAT(reason("m", {{"update", "soon"}}), HasSubstr("Invalid value for `update`."));
  EXPECT_THAT(reason("r", {{"conflicts", "true"}}), HasSubstr("`conflicts` is invalid for reduce views."));
  EXPECT_THAT(reason("r", {{"group", "false"}, {"group_level", "1"}}),
              HasSubstr("Can't specify group=false and group_level>0 at the same time"));
}

TEST_F(Views, DuplicateParameters) {
  put_design(R"({"v":{"map":"function(doc) { emit([doc.k, doc._id], 1); }","reduce":"_count"}})");
  for (const char* id : {"a", "b", "c"}) put(fmt::format(R"({{"_id":"{}","k":{}}})", id, *id == 'c' ? 2 : 1));
  build();
  EXPECT_EQ(query("v", {{"group", "TRUE"}, {"group_level", "1"}}),
            R"({"rows":[{"key":[1],"value":2},{"key":[2],"value":1}]})");
  const std::string one = R"({"rows":[{"key":null,"value":1}]})";
  EXPECT_EQ(query("v", {{"start_key", "[1]"}, {"key", R"([1,"b"])"}}), one);
  // The last one counts.
  EXPECT_EQ(query("v", {{"key", R"([1,"b"])"}, {"end_key", "[9]"}}), R"({"rows":[{"key":null,"value":2}]})");
}

TEST_F(Views, AFunctionThatNeverEndsFailsItsJobAndIsNamed) {
  const ViewKind impatient(pool, {.invocation = std::chrono::milliseconds(50)});
  const auto index =
      impatient.indexes("_design/d", R"({"views":{"loop":{"map":"function(doc) { while (true); }"}}})").at(0);
  std::vector<SourceDocument> documents;
  for (int i = 0; i < 4; ++i) documents.push_back({{.id = std::to_string(i)}, "{}"});
  EXPECT_THAT(error_of([&] { index->map(documents); }), HasSubstr("Map function `loop` of `_design/d`"));
}

TEST_F(Views, ABuildResumesAfterItsLastCommittedBatchAndStaleBuildersCannotWrite) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.n, null); }","reduce":"_count"}})");
  for (int i = 0; i < 30; ++i) put(fmt::format(R"({{"n":{}}})", i));
  request();
  const auto stale = accept().at(0);
  store->run([&](kv::Transaction& tx) { jobs::release(queue, tx, stale.attempt()); });
  builder->run(stale);
  EXPECT_EQ(query("v"), R"({"rows":[]})");
  for (const auto& job : accept()) builder->run(job);
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":30}]})");
}

TEST_F(Views, ABuildEndsOnlyWhenNoChangesAreLeft) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.n, null); }","reduce":"_count"}})");
  put("{}");
  request();
  const auto job = accept().at(0);
  put("{}");
  request();  // the job is running: no effect
  builder->run(job);
  EXPECT_TRUE(accept().empty());
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":2}]})");
}

TEST_F(Views, ChangesWhileBuildsRunAreNeverMissed) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.n, null); }","reduce":"_count"}})");
  builder->start("test");
  constexpr int kWriters = 2, kWrites = 60;
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      for (int i = 0; i < kWrites; ++i) {
        put("{}");
        // Each writer requests a build, as ken does.
        request();
      }
    });
  }
  for (auto& writer : writers) writer.join();
  const auto idle = [&] {
    return store->run([&](kv::Transaction& tx) {
      auto counts = queue.counts(tx, "views");
      return counts[jobs::State::pending] + counts[jobs::State::running] == 0;
    });
  };
  for (int i = 0; i < 60'000 && !idle(); ++i) clock.sleep(std::chrono::milliseconds(1));
  EXPECT_EQ(query("v"), fmt::format(R"({{"rows":[{{"key":null,"value":{}}}]}})", kWriters * kWrites));
}

TEST_F(Views, TheBuildersThreadsRunRequestedBuilds) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.n, null); }","reduce":"_count"}})");
  for (int i = 0; i < 50; ++i) put("{}");
  builder->start("test");
  const auto built = [&] {
    return store->run([&](kv::Transaction& tx) {
      const auto db = catalog.open(tx, "db");
      return read_sequence(tx, IndexKeys(db, index()->signature())) != kv::Versionstamp() &&
             queue.counts(tx, "views")[jobs::State::finished] == 1;
    });
  };
  request();
  for (int i = 0; i < 60'000 && !built(); ++i) clock.sleep(std::chrono::milliseconds(1));
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":50}]})");
}

TEST_F(Views, AnIndexThatOneDesignDocumentDropsIsBuiltForTheOther) {
  constexpr std::string_view kViews = R"({"v":{"map":"function(doc) { emit(doc.n, null); }"}})";
  const auto rev = put(R"({"_id":"_design/a","views":)" + std::string(kViews) + "}");
  put(R"({"_id":"_design/b","views":)" + std::string(kViews) + "}");
  put("{}");
  request();  // for _design/a, the first
  put(R"({"_id":"_design/a","_deleted":true,"_rev":")" + rev + "\"}");
  for (const auto& job : accept()) builder->run(job);
  EXPECT_THAT(query("v"), HasSubstr(R"("total_rows":1)"));
}

// Calls a function when the index has advanced for the first time.
struct AtFirstCommit {
  AtFirstCommit(events::Bus& bus, const std::function<void()>& action) {
    subscription = bus.subscribe(events::database_channel("db"), {.notify = [this, action] {
                                   while (const auto message = subscription.try_next()) {
                                     const bool commit =
                                         message->event && message->event->kind == "index_commit";
                                     if (commit && !std::exchange(done, true)) action();
                                   }
                                 }});
  }
  bool done = false;
  events::Subscription subscription;
};

TEST_F(Views, ABuildEndsWhenItsIndexIsNoLongerDefined) {
  put(R"({"_id":"a"})");
  const auto rev = put(R"({"_id":"_design/d","views":{"v":{"map":"function(doc) { emit(1); }"}}})");
  for (int i = 0; i < 100; ++i) put("{}");
  request();
  const auto old = index();
  AtFirstCommit then(bus, [&] { put(R"({"_id":"_design/d","_deleted":true,"_rev":")" + rev + "\"}"); });
  for (const auto& job : accept()) builder->run(job);
  EXPECT_TRUE(then.done);
  store->run([&](kv::Transaction& tx) {
    const auto db = catalog.open(tx, "db");
    EXPECT_EQ(queue.counts(tx, "views")[jobs::State::finished], 1);
    EXPECT_LT(count_rows(tx, IndexKeys(db, old->signature()), 0), 80);
  });
}

TEST_F(Views, ABuildThatLosesItsDatabaseHasNotFailed) {
  put_design(R"({"v":{"map":"function(doc) { emit(1); }"}})");
  for (int i = 0; i < 100; ++i) put("{}");
  request();
  AtFirstCommit then(bus, [&] { store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); }); });
  for (const auto& job : accept()) builder->run(job);
  EXPECT_TRUE(then.done);
  const auto counts = store->run([&](kv::Transaction& tx) { return queue.counts(tx, "views"); });
  EXPECT_EQ(counts.at(jobs::State::finished), 1);
}

TEST_F(Views, ADocumentThatChangesDuringAFirstBuildHasItsLastRowsOnly) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.n, doc.n); }","reduce":"_sum"}})");
  const auto rev = put(R"({"_id":"a","n":1000})");
  for (int i = 0; i < 20; ++i) put(R"({"n":1})");
  request();
  AtFirstCommit then(bus, [&] { put(R"({"_id":"a","n":2,"_rev":")" + rev + "\"}"); });
  for (const auto& job : accept()) builder->run(job);
  EXPECT_TRUE(then.done);
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":22}]})");
}

TEST_F(Views, RowsOfUndefinedIndexesAreRemoved) {
  put(R"({"_id":"a"})");
  put(R"({"_id":"_design/kept","views":{"v":{"map":"function(doc) { emit('kept'); }"}}})");
  build();
  const auto kept = index();
  const auto rev = put(R"({"_id":"_design/a","views":{"v":{"map":"function(doc) { emit('gone'); }"}}})");
  build();
  const auto gone = index();
  ASSERT_NE(kept->signature(), gone->signature());
  put(R"({"_id":"_design/a","_deleted":true,"_rev":")" + rev + "\"}");
  const auto keys_of = [&](const ViewIndex& index) {
    return store->run([&](kv::Transaction& tx) {
      return tx.get_range(IndexKeys(catalog.open(tx, "db"), index.signature()).all()).rows.size();
    });
  };
  EXPECT_GT(keys_of(*gone), 0u);
  const auto kept_keys = keys_of(*kept);
  const auto remove = [&] {
    return store->run([&](kv::Transaction& tx) { return remove_unused(tx, catalog.open(tx, "db"), kinds); });
  };
  EXPECT_EQ(remove(), 1u);
  EXPECT_EQ(remove(), 0u);
  EXPECT_EQ(keys_of(*gone), 0u);
  EXPECT_EQ(keys_of(*kept), kept_keys);
  EXPECT_GT(kept_keys, 0u);
}

TEST_F(Views, AnIndexThatIsRemovedWhileItIsBuiltIsBuiltAgain) {
  put_design(R"({"v":{"map":"function(doc) { emit(1); }"}})");
  for (int i = 0; i < 50; ++i) put("{}");
  request();
  const std::string signature = index()->signature();
  AtFirstCommit then(bus, [&] {
    store->run(
        [&](kv::Transaction& tx) { tx.clear_range(IndexKeys(catalog.open(tx, "db"), signature).all()); });
  });
  for (const auto& job : accept()) builder->run(job);
  EXPECT_TRUE(then.done);
  // The job is not held by a builder that has abandoned it.
  const auto state = store->run([&](kv::Transaction& tx) { return queue.counts(tx, "views"); });
  EXPECT_EQ(state.at(jobs::State::running), 0);
  build();
  EXPECT_THAT(query("v"), HasSubstr(R"("total_rows":50)"));
}

TEST_F(Views, ALongBuildYieldsToOthers) {
  Builder yielding(*store, catalog, queue, monitor, kinds, clock,
                   {.batch_documents = 7, .time_slice = Duration(0)});
  for (int i = 0; i < 50; ++i) put("{}");
  put_design(R"({"v":{"map":"function(doc) { emit(1); }"}})");
  request();
  const auto first = accept().at(0);
  put(R"({"_id":"_design/a","views":{"v":{"map":"function(doc) { emit(2); }"}}})");
  request();
  yielding.run(first);
  const auto second = accept().at(0);
  EXPECT_NE(second.job.id, first.job.id);
  EXPECT_EQ(queue_state(first.job.id), jobs::State::pending);
  // Without competition it runs to its end.
  const auto again = accept().at(0);
  EXPECT_EQ(again.job.id, first.job.id);
  yielding.run(again);
  EXPECT_EQ(queue_state(first.job.id), jobs::State::finished);
}

TEST_F(Views, TheSizeOfABatchIsBounded) {
  // More than the sandbox returns in one message.
  constexpr int kMany = 70;
  put_design(R"({"v":{"map":"function(doc) { emit(doc._id, new Array(1000001).join('x')); }"}})");
  std::vector<SourceDocument> documents;
  for (int i = 0; i < kMany; ++i) {
    documents.push_back({{.id = std::to_string(i)}, fmt::format(R"({{"_id":"{}"}})", i)});
  }
  const auto mapped = index()->map(documents);
  EXPECT_GE(mapped->documents(), 1u);
  EXPECT_LT(mapped->documents(), kMany);
}

TEST_F(Views, BatchesThatAreMappedInPartsAreWrittenCompletely) {
  // A batch's time is up after each document.
  Kinds hurried;
  hurried.push_back(std::make_unique<ViewKind>(pool, js::Limits{.batch = std::chrono::milliseconds(5)}));
  Builder one_by_one(*store, catalog, queue, monitor, hurried, clock, {.batch_documents = 7});
  constexpr std::string_view kViews =
      R"({"v":{"map":"function(doc) { var t = Date.now(); while (Date.now() - t < 10); emit(doc._id); }"}})";
  put_design(kViews);
  for (int i = 0; i < 20; ++i) put("{}");
  // More than a busy machine maps before it finds that time is up.
  const std::vector<SourceDocument> documents(500, {{.id = "a"}, "{}"});
  const auto index = hurried.front()->indexes("_design/d", R"({"views":)" + std::string(kViews) + "}").at(0);
  EXPECT_LT(index->map(documents)->documents(), documents.size());
  request();
  for (const auto& job : accept()) one_by_one.run(job);
  EXPECT_THAT(query("v", {{"limit", "0"}}), HasSubstr(R"("total_rows":20)"));
}

TEST_F(Views, ADocumentMayChangeAllOfManyRows) {
  put_design(
      R"({"long":{"map":"function(doc) { for (var i = 0; i < doc.long; i++) emit(new Array(2401).join(doc.c) + i); }"},)"
      R"("short":{"map":"function(doc) { for (var i = 0; i < doc.short; i++) emit(doc.c + i); }"}})");
  for (const auto* size : {R"("long":2000)", R"("short":100000)"}) {
    const std::string id = fmt::format(R"("_id":"d{}")", size[1]);
    const auto rev = put(fmt::format(R"({{{},{},"c":"a"}})", id, size));
    build();
    put(fmt::format(R"({{{},{},"c":"b","_rev":"{}"}})", id, size, rev));
    build();
  }
  put("{}");
  build();
  const auto counts = store->run([&](kv::Transaction& tx) { return queue.counts(tx, "views"); });
  EXPECT_EQ(counts.at(jobs::State::finished), 1);
}

TEST_F(Views, LargeValuesAreReducedInParts) {
  put_design(
      R"({"v":{"map":"function(doc) { emit(1, new Array(200001).join('x')); }","reduce":"function(k, v, r) { return {n: r ? sum(v.map(function(x) { return x.n; })) : v.length, re: r}; }"}})");
  for (int i = 0; i < 40; ++i) put("{}");
  build();
  EXPECT_EQ(query("v"), R"({"rows":[{"key":null,"value":{"n":40,"re":true}}]})");
}

TEST_F(Views, ManyKeysAreLookedUpInSeveralPagesEvenIfTheyHaveNoRows) {
  put_design(R"({"v":{"map":"function(doc) { emit(doc.n, 1); }","reduce":"_sum"}})");
  put(R"({"_id":"a","n":-1})");
  build();
  const auto index = this->index();
  std::string keys = "[";
  for (int i = 0; i < 5000; ++i) keys += fmt::format("{},", i);
  const auto ask = [&](const char* name, const char* rows) {
    ViewParams params;
    set_param(params, name, name == std::string("group") ? "true" : "false");
    set_param(params, "keys", keys + "-1]");
    Query query(*store, catalog, "db", index, *index->find("v"), params);
    std::string out;
    int pages = 1;
    while (query.next(out)) ++pages;
    EXPECT_GT(pages, 2);
    EXPECT_THAT(json::compact(out), HasSubstr(rows));
  };
  ask("reduce", R"("rows":[{"id":"a","key":-1,"value":1}])");
  ask("group", R"("rows":[{"key":-1,"value":1}])");
}

}  // namespace
}  // namespace divan::index::views
