// Searches of real documents, with real functions and builds.
#include <cmath>
#include <regex>

#include "divan/index/search/check.h"
#include "divan/index/search/highlighter.h"
#include "divan/index/search/query_parser.h"
#include "divan/index/search/search_testing.h"
#include "divan/kv/chunks.h"

namespace divan::index::search {
namespace {

using SearchTest = SearchFixture;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(SearchTest, ScoresAreThoseOfBm25) {
  put(without_newlines(kDesign));
  put_all({R"({"_id":"a","text":"x y y"})", R"({"_id":"b","text":"x"})", R"({"_id":"c","text":"y z z z z"})",
           R"({"_id":"d","title":"x"})"});
  build();
  // 4 documents, of which 3 have the field, with 9 terms in it.
  const double average = 3;
  const auto score = [&](double frequency, double length, double documents_with_term) {
    const double idf = std::log(1 + (4 - documents_with_term + 0.5) / (documents_with_term + 0.5));
    return idf * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / average));
  };
  const auto scores = [&](const std::string& query) {
    std::map<std::string, double> found;
    const auto response = search({{"q", json::quoted(query)}});
    double last = 1e9;
    json::for_each_element(*json::member(response, "rows"), [&](std::string_view row) {
      const double value = std::stod(std::string(json::member(row, "order")->substr(1)));
      EXPECT_LE(value, last);
      last = value;
      return found.emplace(*json::string_value(*json::member(row, "id")), value).second;
    });
    return found;
  };
  const auto near = [](double value) { return ::testing::DoubleNear(value, 1e-9); };
  using ::testing::Pair;
  EXPECT_THAT(scores("x"),
              UnorderedElementsAre(Pair("a", near(score(1, 3, 2))), Pair("b", near(score(1, 1, 2)))));
  EXPECT_THAT(scores("y^3"),
              UnorderedElementsAre(Pair("a", near(3 * score(2, 3, 2))), Pair("c", near(3 * score(1, 5, 2)))));
  EXPECT_THAT(scores("+x y"), UnorderedElementsAre(Pair("a", near(score(1, 3, 2) + score(2, 3, 2))),
                                                   Pair("b", near(score(1, 1, 2)))));
  EXPECT_THAT(scores("\"x y\""), UnorderedElementsAre(Pair("a", near(2 * score(1, 3, 2)))));
  EXPECT_THAT(scores("z*^2"), UnorderedElementsAre(Pair("c", near(2))));
  // The boost of the field when it was indexed.
  const double title = std::log(1 + (4 - 1 + 0.5) / 1.5);
  EXPECT_THAT(scores("title:x"), UnorderedElementsAre(Pair("d", near(2 * title))));
}

TEST_F(SearchTest, PagesAreStableWhileDocumentsAreWritten) {
  put(without_newlines(kDesign));
  std::vector<std::string> texts, expected;
  for (int i = 0; i < 60; ++i) {
    texts.push_back(fmt::format(R"({{"_id":"p{:02}","n":{},"text":"{}"}})", i, i % 7,
                                i % 3 == 0   ? "x x y"
                                : i % 3 == 1 ? "x y y"
                                             : "x"));
    expected.push_back(fmt::format("p{:02}", i));
  }
  put_all(texts);
  build();
  int written = 0;
  const auto write = [&] {
    if (written > 60) return;
    std::vector<std::string> more;
    for (int i = 0; i < 7; ++i)
      more.push_back(fmt::format(R"({{"_id":"q{:03}","text":"x x x x z"}})", written++));
    put_all(more);
    build();
  };
  for (const std::string sort : {"", R"(["n"])", R"(["-n","<score>"])"}) {
    SearchParamTexts params{{"q", "\"x\""}, {"limit", "9"}};
    if (!sort.empty()) params.emplace_back("sort", sort);
    auto found = all(params, write);
    std::erase_if(found, [](const auto& id) { return id.starts_with('q'); });
    auto sorted = found;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, expected) << sort;
  }
}

TEST_F(SearchTest, SortsByFieldsNumbersAndDistances) {
  put(R"({"_id":"_design/d","indexes":{"i":{"index":"function (doc) { for (const name in doc) if (name[0] !== '_') index(name, doc[name]) }"}}})");
  put_all({R"({"_id":"paris","name":"Paris","n":2,"lon":2.35,"lat":48.86})",
           R"({"_id":"rome","name":"Rome","n":2.5,"lon":12.5,"lat":41.9})",
           R"({"_id":"oslo","name":"Oslo","n":-1,"lon":10.75,"lat":59.91})", R"({"_id":"none","x":"y"})"});
  build();
  const auto sorted = [&](const std::string& sort) { return ids("*:*", {{"sort", sort}}); };
  EXPECT_THAT(sorted(R"("name<string>")"), ElementsAre("none", "oslo", "paris", "rome"));
  EXPECT_THAT(sorted(R"("-name<string>")"), ElementsAre("rome", "paris", "oslo", "none"));
  EXPECT_THAT(sorted(R"(["n"])"), ElementsAre("none", "oslo", "paris", "rome"));
  EXPECT_THAT(sorted(R"(["-n<number>"])"), ElementsAre("rome", "paris", "oslo", "none"));
  EXPECT_THAT(sorted(R"("<doc>")"), ElementsAre("paris", "rome", "oslo", "none"));
  EXPECT_THAT(sorted(R"("-<doc>")"), ElementsAre("none", "oslo", "rome", "paris"));
  const auto response =
      search({{"q", R"("lon:[0 TO 50]")"}, {"sort", R"("<distance,lon,lat,13.4,52.52,km>")"}});
  EXPECT_THAT(ids_of(response), ElementsAre("oslo", "paris", "rome"));  // from Berlin
  EXPECT_THAT(response, HasSubstr(R"("order":[838.67)"));
  EXPECT_THAT(ids("lon:[0 TO 50]", {{"sort", R"(["-<distance,lon,lat,13.4,52.52,mi>"])"}}),
              ElementsAre("rome", "paris", "oslo"));
  const auto error = [&](const std::string& sort) { return divan::error_of([&] { sorted(sort); }); };
  EXPECT_THAT(error(R"("name")"), HasSubstr("cannot sort string field as numeric field"));
  EXPECT_THAT(error(R"("name<date>")"), HasSubstr("Unrecognized type: date"));
  EXPECT_THAT(error(R"("<nothing>")"), HasSubstr("Unrecognized"));
  EXPECT_THAT(error(R"("<distance,lon,lat,x,y>")"), HasSubstr("Unrecognized sort parameter"));
}

TEST_F(SearchTest, CountsRangesAndDrilldown) {
  put(without_newlines(kDesign));
  put_all({R"({"_id":"a","key":"Chair","n":5,"tags":["red","old"]})",
           R"({"_id":"b","key":"Chair","n":15,"tags":["red","red"]})", R"({"_id":"c","key":"Table","n":25})",
           R"({"_id":"d","text":"other"})"});
  build();
  const auto response = search({{"q", R"("*:*")"},
                                {"counts", R"(["key","tags","none"])"},
                                {"ranges", R"({"n":{"low":"[0 TO 15}","high":"[15 TO *]"}})"}});
  EXPECT_THAT(response,
              HasSubstr(R"("counts":{"key":{"Chair":2,"Table":1},"tags":{"red":2,"old":1},"none":{}})"));
  EXPECT_THAT(response, HasSubstr(R"("ranges":{"n":{"low":1,"high":2}})"));
  EXPECT_THAT(ids("*:*", {{"drilldown", R"(["key","Chair"])"}}), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(ids("*:*", {{"drilldown", R"(["key","Chair","Table"])"}}), UnorderedElementsAre("a", "b", "c"));
  EXPECT_THAT(ids("*:*", {{"drilldown", R"([["key","Chair"],["tags","old"]])"}}), ElementsAre("a"));
  EXPECT_THAT(ids("key:Chair"), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(divan::error_of([&] {
                search({{"q", "\"*:*\""}, {"ranges", R"({"n":{"x":"y"}})"}});
              }),
              HasSubstr("y was not a well-formed range specification"));
  EXPECT_THAT(response, HasSubstr(R"("fields":{"key":"Chair","tags":["red","old"]})"));
  EXPECT_THAT(search({{"q", R"("_id:a")"}, {"include_fields", R"(["key","x"])"}}),
              HasSubstr(R"("fields":{"key":"Chair"})"));
}

TEST_F(SearchTest, Groups) {
  put(without_newlines(kDesign));
  put_all({R"({"_id":"a","key":"x","n":5})", R"({"_id":"b","key":"y","n":1})",
           R"({"_id":"c","key":"x","n":3})", R"({"_id":"d","key":"z","n":4})", R"({"_id":"e","n":9})"});
  build();
  const auto response = search({{"q", R"("*:*")"},
                                {"group_field", R"("key<string>")"},
                                {"group_sort", R"(["n"])"},
                                {"group_limit", "3"},
                                {"sort", R"("n")"},
                                {"limit", "1"}});
  EXPECT_EQ(
      std::regex_replace(response, std::regex(R"("order":\[[^\]]*\],"fields":\{[^}]*\})"), "..."),
      R"({"total_rows":5,"groups":[{"by":"y","total_rows":1,"rows":[{"id":"b",...}]},)"
      R"({"by":"x","total_rows":2,"rows":[{"id":"c",...}]},{"by":"z","total_rows":1,"rows":[{"id":"d",...}]}]})");
  EXPECT_THAT(search({{"q", R"("*:*")"}, {"group_by", R"("key")"}, {"group_limit", "1"}}),
              HasSubstr(R"({"total_hits":5,"total_grouped_hits":)"));
  EXPECT_THAT(divan::error_of([&] {
                search({{"q", "\"*:*\""}, {"group_field", R"("n<number>")"}});
              }),
              HasSubstr("Group by number not supported. Group by string terms only."));
}

TEST_F(SearchTest, Highlights) {
  put(without_newlines(kDesign));
  put(R"({"_id":"a","text":"the quick brown fox jumps over the lazy dog and the quick cat"})");
  build();
  const auto highlights = [&](const std::string& query, SearchParamTexts more = {}) {
    more.emplace_back("q", json::quoted(query));
    more.emplace_back("highlight_fields", R"(["default"])");
    const auto response = search(more);
    const auto begin = response.find("\"highlights\":");
    return response.substr(begin + 13, response.find('}', begin) - begin - 12);
  };
  EXPECT_EQ(
      highlights("quick"),
      R"({"default":["the <em>quick</em> brown fox jumps over the lazy dog and the <em>quick</em> cat"]})");
  EXPECT_EQ(highlights("qui* OR fox -zebra", {{"highlight_size", "20"}, {"highlight_number", "2"}}),
            R"({"default":["the <em>quick</em> brown <em>fox</em>"," dog and the <em>quick</em>"]})");
  EXPECT_EQ(highlights("\"lazy dog\"", {{"highlight_size", "5"},
                                        {"highlight_pre_tag", R"("<b>")"},
                                        {"highlight_post_tag", R"("</b>")"}}),
            R"({"default":[" <b>lazy</b>"]})");
  const Highlighter highlighter(parse_query("本語", *text::make_analyzer("\"cjk\"")), {"[", "]", 1, 100});
  EXPECT_THAT(highlighter.fragments(*text::make_analyzer("\"cjk\""), "日本語の"), ElementsAre("日[本語]の"));
  // A longer term is not in the index.
  const auto keyword = text::make_analyzer("\"keyword\"");
  const Highlighter wildcard(parse_query("a*", *keyword), {"[", "]", 1, 100});
  EXPECT_THAT(wildcard.fragments(*keyword, std::string(kMaxTermBytes, 'a')), ::testing::SizeIs(1));
  EXPECT_THAT(wildcard.fragments(*keyword, std::string(kMaxTermBytes + 1, 'a')), IsEmpty());
}

TEST_F(SearchTest, WhatCannotBeIndexedIsRecorded) {
  put(without_newlines(kDesign));
  put_all({fmt::format(R"({{"_id":"a","text":"x","key":"{}"}})", std::string(kMaxTermBytes + 1, 'k')),
           R"({"_id":"b","text":"x","title":5})", R"({"_id":"c","text":["x"]})"});
  build();
  // A function that throws has indexed nothing of the document.
  EXPECT_THAT(ids("x"), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(ids("title:5"), ElementsAre("b"));
  store->run([&](kv::Transaction& tx) {
    std::string out;
    json::Writer writer(out);
    read_left_out(tx, IndexKeys(catalog.open(tx, "db"), index()->signature())).write(writer);
    EXPECT_THAT(out, HasSubstr("A term of field `key` has more than 4000 bytes, and cannot be found: `kkk"));
    EXPECT_THAT(out, HasSubstr("value must be a string, a number or boolean not object"));
  });
}

TEST_F(SearchTest, PhrasesWithRepeatedWords) {
  put(without_newlines(kDesign));
  put_all({R"({"_id":"a","text":"a x x a a"})", R"({"_id":"b","text":"a d a b b a"})",
           R"({"_id":"c","text":"to be or not to be"})", R"({"_id":"d","text":"to be or not"})"});
  build();
  EXPECT_THAT(ids("\"a a a\"~2"), ElementsAre("a"));
  EXPECT_THAT(ids("\"a a a\"~1"), IsEmpty());
  EXPECT_THAT(ids("\"d b b\"~2"), ElementsAre("b"));
  EXPECT_THAT(ids("\"to be or not to be\""), ElementsAre("c"));
  EXPECT_THAT(ids("\"to be to be\"~2"), ElementsAre("c"));
}

TEST_F(SearchTest, ManyFieldsOfADocument) {
  put(R"({"_id":"_design/d","indexes":{"i":{"index":"function (doc) { for (let n = 0; n < doc.n; n++) index(doc._id + '-field-' + n, 'word' + n) }"}}})");
  std::vector<std::string> texts;
  for (int i = 0; i < 120; ++i) texts.push_back(fmt::format(R"({{"_id":"d{}","n":1000}})", i));
  texts.push_back(R"({"_id":"many","n":6000})");
  texts.push_back(R"({"_id":"too-many","n":30000})");
  put_all(texts);
  build();
  EXPECT_THAT(ids("d7-field-999:word999"), ElementsAre("d7"));
  EXPECT_THAT(ids("many-field-5999:word5999"), ElementsAre("many"));
  EXPECT_THAT(ids("too-many-field-5:word5"), ElementsAre("too-many"));
  EXPECT_THAT(ids("too-many-field-29999:word29999"), IsEmpty());
  EXPECT_EQ(state().documents, 122);
  store->run([&](kv::Transaction& tx) {
    std::string out;
    json::Writer writer(out);
    read_left_out(tx, IndexKeys(catalog.open(tx, "db"), index()->signature())).write(writer);
    EXPECT_THAT(out, HasSubstr("It has too many fields; `too-many-field-"));
  });
}

TEST_F(SearchTest, FunctionsCannotForgeFieldsNorLoseThem) {
  put(without_newlines(R"({"_id":"_design/d","indexes":{"i":{"index":"function (doc) {
    if (doc._id === 'b') {
      Array.prototype.toJSON = Object.prototype.toJSON = String.prototype.toJSON = function () { return 5 };
      emit({name: '_x', value: 1}, null); emit(['default', 'y', {}], null); emit({name: 'o', value: {}}, null);
      index('n', NaN);
    }
    index('default', 'x', {store: true}); }"}}})"));
  put_all({R"({"_id":"a"})", R"({"_id":"b"})", R"({"_id":"c"})"});
  build();
  EXPECT_THAT(ids("x"), ElementsAre("a", "b", "c"));
  const auto response = search({{"q", "\"x y *:*\""}});
  EXPECT_THAT(response, HasSubstr(R"("fields":{"default":"x"})"));
  EXPECT_EQ(response.find("_x"), std::string::npos);
  store->run([&](kv::Transaction& tx) {
    const auto left_out = read_left_out(tx, IndexKeys(catalog.open(tx, "db"), index()->signature()));
    EXPECT_EQ(left_out.documents, 1);
  });
}

TEST_F(SearchTest, WhatWouldTakeTooLongIsRefused) {
  put(without_newlines(kDesign));
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i)
    texts.push_back(fmt::format(R"({{"_id":"{}","key":"{}{}"}})", i, std::string(3'900, 'a'), i));
  std::string words, phrase = "\"";
  for (int i = 0; i < 1'000; ++i) {
    words += fmt::format("w{} ", i % 500);
    phrase += fmt::format("w{} ", i);
  }
  for (int i = 0; i < 20; ++i) words += words.substr(0, 3'000);
  texts.push_back(fmt::format(R"({{"_id":"words","text":"{}"}})", words));
  put_all(texts);
  build();
  const auto error = [&](const std::string& query) { return divan::error_of([&] { ids(query); }); };
  EXPECT_EQ(ids("key:" + std::string(3'900, 'a') + "x~1").size(), 10u);
  std::string fuzzy;
  for (int i = 0; i < 200; ++i) fuzzy += fmt::format("key:{}xyz{}~2 ", std::string(3'890, 'a'), i);
  EXPECT_THAT(error(fuzzy), HasSubstr("search_too_expensive"));
  EXPECT_THAT(error("key:*" + std::string(990, 'a') + "b key:*" + std::string(990, 'a') + "c"),
              HasSubstr("search_too_expensive"));
  EXPECT_THAT(error("key:*" + std::string(1'990, 'a')), HasSubstr("1000 bytes at most"));
  std::string repeated = "\"";
  for (int i = 0; i < 1'000; ++i) repeated += "w1 w2 ";
  EXPECT_THAT(error(repeated + "\"~10000"), HasSubstr("search_too_expensive"));
  EXPECT_THAT(ids(phrase + "\"~10000"), IsEmpty());
}

TEST_F(SearchTest, ScoresAreFinite) {
  put(without_newlines(kDesign));
  put_all({R"({"_id":"a","text":"x"})", R"({"_id":"b","text":"y"})"});
  build();
  std::string query = "x y";
  // With two words, so that the parentheses remain.
  for (int i = 0; i < 50; ++i) query = "(" + query + " z)^1000000000";
  // Pages continue, which they cannot after a score that JSON does not have.
  const auto pages = [&](const std::string& text) {
    return all({{"q", json::quoted(text)}, {"limit", "1"}});
  };
  EXPECT_THAT(pages(query), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(pages("(" + query + ")^0"), UnorderedElementsAre("a", "b"));
}

TEST_F(SearchTest, AnIndexThatWasRemovedIsAnError) {
  put(without_newlines(kDesign));
  put_all({R"({"_id":"a","text":"x"})"});
  build();
  const Search search(index(), parse_params({{"q", "\"x\""}}));
  const auto run = [&] {
    const auto tx = store->begin();
    const auto database = catalog.open(*tx, "db");
    const IndexKeys keys(database, index()->signature());
    const auto known = read_sequence(*tx, keys);
    search.run(*tx, database, known);
    tx->clear_range(keys.all());
    search.run(*tx, database, known);
  };
  EXPECT_THAT(divan::error_of(run), HasSubstr("The index was removed."));
}

TEST_F(SearchTest, ForgedBookmarks) {
  put(without_newlines(kDesign));
  put_all({R"({"_id":"a","text":"x"})", R"({"_id":"b","text":"x"})"});
  build();
  const auto page = [&](const std::string& bookmark) {
    return divan::error_of([&] { ids("x", {{"bookmark", json::quoted(bookmark)}}); });
  };
  const Bookmark real{.statistics = {2, 1, 2}, .values = {0.5}, .number = 1};
  EXPECT_EQ(page(real.encode()), "no error");
  EXPECT_THAT(page(Bookmark{.statistics = {2, 1}, .values = {0.5}}.encode()), HasSubstr("another query"));
  EXPECT_THAT(page(Bookmark{.statistics = {2, 1, 2, 3}, .values = {0.5}}.encode()),
              HasSubstr("another query"));
  EXPECT_EQ(page(Bookmark{.statistics = {2, 0, 2}, .values = {0.5}}.encode()), "no error");
  EXPECT_THAT(page(Bookmark{.statistics = {2, -1, 2}, .values = {0.5}}.encode()),
              HasSubstr("Invalid bookmark"));
  EXPECT_THAT(page(Bookmark{.statistics = {1e300, 1, 2}, .values = {0.5}}.encode()),
              HasSubstr("Invalid bookmark"));
  EXPECT_THAT(page(Bookmark{.statistics = {2, 1, 2}, .values = {0.5, 0.5}}.encode()),
              HasSubstr("sort order not compatible with given bookmark"));
}

TEST_F(SearchTest, ABatchOfSeveralTransactionsIsVisibleWithTheLast) {
  put(without_newlines(kDesign));
  put_all({R"({"_id":"a","text":"before"})"});
  build();
  const auto index = this->index();
  const auto keys =
      store->run([&](kv::Transaction& tx) { return IndexKeys(catalog.open(tx, "db"), index->signature()); });
  std::string words;
  for (int i = 0; words.size() < 3'000'000; ++i) words += fmt::format("word{} ", i);
  const auto batch_of = [&](const std::string& id) {
    auto batch =
        std::make_unique<SearchBatch>(std::shared_ptr<const text::Analyzer>(index, &index->analyzer()));
    batch->add_document(id);
    batch->add_field(0, {.name = "default", .json = json::quoted(words), .is_stored = true});
    batch->end_fields(0);
    return batch;
  };
  const auto write = [&](SearchBatch& batch) {
    const auto next = batch.prepare(*store, keys, 0, {});
    store->run([&](kv::Transaction& tx) { batch.write(tx, keys); });
    return next == 1;
  };
  const auto documents = [&] {
    return store->run([&](kv::Transaction& tx) {
      return tx.get_range(kv::below(SearchKeys(keys).part(Part::documents))).rows.size();
    });
  };
  {
    // Is never finished.
    const auto batch = batch_of("a");
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(write(*batch));
    EXPECT_THAT(ids("word7"), IsEmpty());
    EXPECT_THAT(ids("before"), ElementsAre("a"));
  }
  const auto batch = batch_of("a");
  int transactions = 1;
  while (!write(*batch)) {
    ++transactions;
    EXPECT_THAT(ids("before"), ElementsAre("a"));
  }
  EXPECT_GT(transactions, 5);
  EXPECT_THAT(ids("before"), IsEmpty());
  EXPECT_THAT(ids("word7 AND word70000"), ElementsAre("a"));
  // Of the first attempt nothing is left but entries, which merges remove.
  EXPECT_EQ(documents(), kv::chunk_count(words.size() + 100));
  kv::testing::MapRows stored(*store);
  kv::Findings found;
  Check check(found, [](std::int64_t) { return "db"; });
  kv::testing::run_checks(stored, {&check});
  EXPECT_THAT(found.kept(), IsEmpty());
}

}  // namespace
}  // namespace divan::index::search
