#include "divan/mango/find.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "divan/base/error_testing.h"
#include "divan/collation/collation.h"
#include "divan/index/views/views_testing.h"
#include "divan/mango/testing.h"

namespace divan::mango {
namespace {

using ::testing::HasSubstr;

struct FindFixture : index::views::testing::ViewsFixture {
  void SetUp() override {
    kinds.push_back(std::make_unique<index::views::ViewKind>(pool));
    set_up(std::make_unique<index::search::SearchKind>(pool), 7);
  }
  void define(const std::string& fields, std::string_view filter = "{}") {
    std::string body = testing::Definitions::design(fields, filter);
    put(R"({"_id":"_design/)" + fields + "\"," + body.substr(1));
  }
  void define_text(const std::string& name, std::string_view definition) {
    put(R"({"_id":"_design/)" + name + R"(","language":"query","indexes":{")" + name + R"(":{"index":)" +
        json::compact(definition) + "}}}");
  }
  std::vector<jobs::AcceptedJob> accept_builds(std::size_t count) {
    const std::vector<std::string> types{"views", "indexes"};
    return store->run(
        [&](kv::Transaction& tx) { return jobs::accept(queue, tx, types, {.limit = count}).jobs; });
  }
  void build_all() {
    const auto indexes =
        store->run([&](kv::Transaction& tx) { return index::indexes_of(tx, catalog.open(tx, "db"), kinds); });
    for (const auto& index : indexes) {
      store->run([&](kv::Transaction& tx) {
        request_build(queue, tx, catalog.open(tx, "db"), *index, index::kQueryPriority, nullptr);
      });
    }
    for (const auto& job : accept_builds(indexes.size())) builder->run(job);
  }
  Plan plan(const FindRequest& request) {
    return store->run([&](kv::Transaction& tx) {
      return make_plan(request, mango::indexes_of(tx, catalog.open(tx, "db"), kinds), true);
    });
  }
  Find begin(std::string_view json) {
    auto request = FindRequest::parse(json::compact(json));
    auto plan = this->plan(request);
    return {{.store = *store, .catalog = catalog, .clock = clock, .database = "db"},
            std::move(request),
            std::move(plan)};
  }
  std::string find(std::string_view json) {
    Find find = begin(json);
    std::string out;
    while (find.next(out)) {}
    return json::compact(out);
  }
  static std::vector<std::string> ids_of(const std::string& response) {
    std::vector<std::string> ids;
    json::for_each_element(*json::member(response, "docs"), [&](std::string_view document) {
      ids.push_back(*json::string_value(*json::member(document, "_id")));
      return true;
    });
    return ids;
  }
  std::vector<std::string> ids(std::string_view json) { return ids_of(find(json)); }
};

using ::testing::ElementsAre;

TEST_F(FindFixture, ReadsAllDocumentsOrAnIndex) {
  for (int n = 0; n < 5; ++n) put(fmt::format(R"({{"_id":"d{}","n":{},"m":{}}})", n, 4 - n, n % 2));
  define("n");
  build_all();
  EXPECT_THAT(ids(R"({"selector":{}})"), ElementsAre("d0", "d1", "d2", "d3", "d4"));  // no design documents
  EXPECT_THAT(ids(R"({"selector":{"n":{"$gt":1}}})"), ElementsAre("d2", "d1", "d0"));
  EXPECT_THAT(ids(R"({"selector":{"n":{"$gt":1}},"sort":[{"n":"desc"}]})"), ElementsAre("d0", "d1", "d2"));
  EXPECT_THAT(ids(R"({"selector":{"m":1}})"), ElementsAre("d1", "d3"));
  EXPECT_THAT(ids(R"({"selector":{"m":0,"n":{"$lt":3}},"skip":1,"limit":1})"), ElementsAre("d2"));
  EXPECT_THAT(ids(R"({"selector":{},"limit":0})"), ElementsAre());
  EXPECT_THAT(ids(R"({"selector":{"_id":{"$gte":"d1","$lt":"d3"}}})"), ElementsAre("d1", "d2"));
  EXPECT_THAT(ids(R"({"selector":{"_id":{"$gte":"d1","$lt":"d3"}},"sort":[{"_id":"desc"}]})"),
              ElementsAre("d2", "d1"));
  EXPECT_THAT(ids(R"({"selector":{"_id":{"$gt":null}}})"), ElementsAre("d0", "d1", "d2", "d3", "d4"));
  EXPECT_THAT(ids(R"({"selector":{"_id":{"$lt":7}}})"), ElementsAre());
}

TEST_F(FindFixture, AStaleIndexNeverShowsWhatDoesNotMatch) {
  const auto rev = put(R"({"_id":"a","n":1})");
  put(R"({"_id":"b","n":1})");
  define("n");
  build_all();
  put(R"({"_id":"a","_rev":")" + rev + R"(","n":5})");
  EXPECT_THAT(ids(R"({"selector":{"n":1}})"), ElementsAre("b"));
  EXPECT_THAT(ids(R"({"selector":{"n":5}})"), ElementsAre());
}

TEST_F(FindFixture, ACoveringIndexIsReadAlone) {
  put(R"({"_id":"a","n":1,"o":{"p":"x"}})");
  put(R"({"_id":"b","n":2,"o":{"p":"y"}})");
  define("n,o.p");
  build_all();
  const auto response =
      find(R"({"selector":{"n":{"$gt":1},"o.p":"y"},"fields":["o.p","_id"],"execution_stats":true})");
  EXPECT_THAT(response, HasSubstr(R"("docs":[{"o":{"p":"y"},"_id":"b"}])"));
  EXPECT_THAT(response, HasSubstr(R"("total_docs_examined":0)"));
}

TEST_F(FindFixture, ADeletedDatabaseEndsAQuery) {
  put(R"({"_id":"a"})");
  Find find = begin(R"({"selector":{}})");
  store->run([&](kv::Transaction& tx) { catalog.remove(tx, "db"); });
  std::string out;
  EXPECT_THROW(find.next(out), Error);
}

// Random queries with every index that can serve them, page by page, against a scan of all documents that
// tests each of them and sorts the matches.
class Model {
 public:
  explicit Model(std::uint32_t seed) : random_(seed) {}

  std::string document(int number) {
    std::string out = fmt::format(R"({{"_id":"{}{}")", pick({"d", "D", "é"}), number);
    for (const auto* field : {"a", "b", "c"}) {
      if (below(4) > 0) out += fmt::format(R"(,"{}":{})", field, value());
    }
    return out + "}";
  }

  std::string selector(int depth = 0) {
    const auto kind = depth > 2 ? 0 : below(8);
    if (kind == 6) return fmt::format(R"({{"$or":[{},{}]}})", selector(depth + 1), selector(depth + 1));
    if (kind == 7) return fmt::format(R"({{"$not":{}}})", selector(depth + 1));
    if (kind > 2) return fmt::format(R"({{"$and":[{},{}]}})", selector(depth + 1), selector(depth + 1));
    if (below(6) == 0)
      return fmt::format(R"({{"_id":{{"{}":"{}"}}}})", pick({"$gt", "$lte", "$beginsWith"}),
                         pick({"d1", "D", "d", "é"}));
    return fmt::format(R"({{"{}":{}}})", pick({"a", "b", "c", "a", "b", "c", "a.0", "b.1.x", "c.x"}),
                       condition());
  }

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_.next() % bound); }
  std::string pick(std::initializer_list<const char*> from) {
    return *(from.begin() + below(static_cast<std::uint32_t>(from.size())));
  }

 private:
  std::string value() {
    return pick({"1", "2", "2.0", "-3", "null", "true", R"("x")", R"("X")", R"("xé")", R"("y")", R"("")",
                 "[1]", "[1,2]", "[]", R"(["x",1])", R"([[1],{"x":"y"}])", R"({"x":1})", "{}",
                 "123456789012345678901234567890"});
  }
  std::string condition() {
    switch (below(8)) {
      case 0: return fmt::format(R"({{"$in":[{},{}]}})", value(), value());
      case 1: return fmt::format(R"({{"$exists":{}}})", pick({"true", "false"}));
      case 2: return fmt::format(R"({{"$beginsWith":"{}"}})", pick({"x", "X", ""}));
      case 3: return value();
      case 4: return fmt::format(R"({{"$not":{{"$gt":{}}}}})", value());
      case 5:
        return pick({R"({"$type":"array"})", R"({"$type":"null"})", R"({"$size":1})", R"({"$all":[1]})",
                     R"({"$all":["x",1]})", R"({"$all":[[1]]})", R"({"$elemMatch":{"$gt":1}})",
                     R"({"$elemMatch":{"x":"y"}})", R"({"$allMatch":{"$in":[1,"x"]}})",
                     R"({"$keyMapMatch":{"$eq":"x"}})", R"({"$regex":"^x"})", R"({"$mod":[2,1]})",
                     R"({"$elemMatch":{"$not":{"$eq":1}}})", R"({"$not":{"$size":2}})"});
      default:
        return fmt::format(R"({{"{}":{}}})", pick({"$lt", "$lte", "$gt", "$gte", "$ne", "$eq"}), value());
    }
  }

  SeededRng random_;
};

class RandomQueries : public FindFixture {
 protected:
  static constexpr int kDocuments = 60;

  void prepare(Model& model) {
    for (int number = 0; number < kDocuments; ++number) {
      const std::string document = model.document(number);
      put(document);
      documents_[*json::string_value(*json::member(document, "_id"))] = document;
    }
    for (const auto* fields : {"a", "b", "a,b", "b,a", "a,b,c", "c,_id", "_id"}) define(fields);
    define_text("everything", "{}");
    define_text("words", R"({"default_analyzer":"simple","index_array_lengths":false})");
    define_text("some", R"({"fields":[{"name":"a","type":"number"},{"name":"b","type":"string"},
      {"name":"a.[]","type":"string"},{"name":"c","type":"boolean"}]})");
    build_all();
  }

  std::vector<std::string> expected(const std::string& selector) const {
    const auto parsed = selector::Selector::parse(selector);
    std::vector<std::string> ids;
    for (const auto& [id, document] : documents_) {
      if (parsed.matches(document)) ids.push_back(id);
    }
    return ids;
  }

  // All results of a query with this index, in pages of `limit`.
  std::vector<std::string> pages(const FindRequest& base, const Plan& plan, std::uint64_t limit) {
    std::vector<std::string> all;
    FindRequest request = base;
    request.limit = limit;
    for (;;) {
      Find find({.store = *store, .catalog = catalog, .clock = clock, .database = "db"}, request, plan);
      std::string out;
      while (find.next(out)) {}
      const std::string response = json::compact(out);
      const auto found = ids_of(response);
      all.insert(all.end(), found.begin(), found.end());
      if (found.size() < limit) return all;
      request.bookmark = *json::string_value(*json::member(response, "bookmark"));
    }
  }

  // The plan that reads the index with this number; nullopt if it cannot serve the query.
  static std::optional<Plan> plan_with(const FindRequest& request, const std::vector<Index>& indexes,
                                       std::size_t number) {
    Plan plan = make_plan(request, {indexes[number]}, false);
    return plan.chosen ? std::optional(std::move(plan)) : std::nullopt;
  }

  std::map<std::string, std::string> documents_;
};

TEST_F(RandomQueries, FindWhatAScanFinds) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    if (seed > 1) {
      documents_.clear();
      store->run([&](kv::Transaction& tx) {
        catalog.remove(tx, "db");
        catalog.create(tx, "db");
      });
    }
    Model model(seed);
    prepare(model);
    const auto indexes =
        store->run([&](kv::Transaction& tx) { return mango::indexes_of(tx, catalog.open(tx, "db"), kinds); });
    std::size_t by_view = 0, by_text = 0;
    for (int round = 0; round < 150; ++round) {
      const std::string selector = model.selector();
      const bool descending = model.below(2) == 1;
      const std::uint64_t limit = 1 + model.below(2 * kDocuments);
      const auto wanted = expected(selector);
      for (std::size_t i = 0; i < indexes.size(); ++i) {
        auto request = FindRequest::parse(fmt::format(R"({{"selector":{}}})", selector));
        const auto plan = plan_with(request, indexes, i);
        if (!plan) continue;
        by_view += indexes[i].views ? 1 : 0;
        by_text += indexes[i].text ? 1 : 0;
        request.sort.descending = descending;  // the order of rows, whatever the fields
        auto found = pages(request, *plan, limit);
        std::ranges::sort(found);
        ASSERT_EQ(found, wanted) << "seed " << seed << ", " << selector << " with " << indexes[i].name
                                 << ", descending " << descending << ", limit " << limit;
      }
    }
    EXPECT_GT(by_view, 100u);
    EXPECT_GT(by_text, 100u);
  }
}

struct TextFixture : FindFixture {
  void SetUp() override {
    FindFixture::SetUp();
    put_all({R"({"_id":"a","title":"The red apple","price":3,"tags":["fruit"]})",
             R"({"_id":"b","title":"A green apple, an apple","price":2,"tags":["fruit","sour"]})",
             R"({"_id":"c","title":"Red wine","price":20,"tags":[]})",
             R"({"_id":"d","note":"apple","price":"red"})"});
    define_text("text", "{}");
    build_all();
  }
};

TEST_F(TextFixture, WordsAreFoundByRelevance) {
  EXPECT_THAT(ids(R"({"selector":{"$text":"apple"}})"), ElementsAre("b", "a", "d"));
  EXPECT_THAT(ids(R"({"selector":{"$text":"red"}})"), ::testing::UnorderedElementsAre("a", "c", "d"));
  EXPECT_THAT(ids(R"({"selector":{"$text":"green apple"}})"), ElementsAre("b"));
  EXPECT_THAT(ids(R"({"selector":{"$text":"apple green"}})"), ElementsAre());  // a phrase
  EXPECT_THAT(ids(R"({"selector":{"$text":"apple","price":{"$lt":3}}})"), ElementsAre("b"));
  EXPECT_THAT(ids(R"({"selector":{"$and":[{"$text":"apple"},{"$text":"red"}]}})"),
              ::testing::UnorderedElementsAre("a", "d"));
  EXPECT_THAT(ids(R"({"selector":{"$text":"the"}})"), ElementsAre());
}

// The index finds more than what matches; `$text` must be tested, too.
TEST_F(TextFixture, WordsMayBeAnAlternative) {
  EXPECT_THAT(ids(R"({"selector":{"$or":[{"$text":"wine"},{"title":{"$regex":"^A"}}]}})"),
              ::testing::UnorderedElementsAre("b", "c"));
  EXPECT_THAT(ids(R"({"selector":{"$or":[{"$text":"wine"},{"$text":"green"}]}})"),
              ::testing::UnorderedElementsAre("b", "c"));
}

TEST_F(TextFixture, ResultsAreSorted) {
  EXPECT_THAT(ids(R"({"selector":{"price":{"$gt":0}},"sort":["price:number"]})"),
              ElementsAre("d", "b", "a", "c"));  // without a number: first
  EXPECT_THAT(ids(R"({"selector":{"price":{"$gt":0,"$lt":"a"}},"sort":[{"price:number":"desc"}]})"),
              ElementsAre("c", "a", "b"));
  EXPECT_THAT(ids(R"({"selector":{"tags":{"$elemMatch":{"$eq":"fruit"}}},"sort":["title:string"]})"),
              ElementsAre("b", "a"));
}

TEST_F(TextFixture, PagesGoOnAfterChanges) {
  const auto first = find(R"({"selector":{"$text":"apple"},"limit":1})");
  EXPECT_THAT(ids_of(first), ElementsAre("b"));
  put(R"({"_id":"e","note":"apple"})");
  build_all();
  const auto rest = [&](std::string_view response) {
    return fmt::format(R"({{"selector":{{"$text":"apple"}},"bookmark":{}}})",
                       *json::member(response, "bookmark"));
  };
  const auto second = find(rest(first));
  EXPECT_THAT(ids_of(second), ::testing::IsSupersetOf({"a", "d"}));
  EXPECT_THAT(ids_of(second), ::testing::Not(::testing::Contains("b")));
  EXPECT_THAT(ids(rest(second)), ElementsAre());
  EXPECT_THAT(ids(R"({"selector":{"$text":"apple"},"skip":2})"), ::testing::SizeIs(2));
  for (const auto* bookmark : {"nil", "x", ""}) {
    const bool is_none = std::string_view(bookmark).empty();
    const auto request = fmt::format(R"({{"selector":{{"$text":"apple"}},"bookmark":"{}"}})", bookmark);
    EXPECT_EQ(divan::error_of([&] { find(request); }).starts_with("invalid_bookmark"), !is_none) << bookmark;
  }
  // That of another query.
  EXPECT_THAT(divan::error_of([&] {
                find(fmt::format(
                    R"({{"selector":{{"$text":"red"}},"sort":["price:number","_id:string"],"bookmark":{}}})",
                    *json::member(first, "bookmark")));
              }),
              HasSubstr("bad_request"));
}

TEST_F(TextFixture, DocumentsAreTestedAsTheyAre) {
  const auto rev = put(R"({"_id":"f","note":"apple","n":1})");
  build_all();
  const auto request = R"({"selector":{"$text":"apple","n":1}})";
  EXPECT_THAT(ids(request), ElementsAre("f"));
  const auto changed = put(R"({"_id":"f","note":"apple","n":2,"_rev":")" + rev + "\"}");
  EXPECT_THAT(ids(request), ElementsAre());
  put(R"({"_id":"f","_deleted":true,"_rev":")" + changed + "\"}");
  EXPECT_THAT(ids(R"({"selector":{"$text":"apple","n":2}})"), ElementsAre());
  EXPECT_THAT(find(R"({"selector":{"$text":"apple"},"execution_stats":true})"),
              HasSubstr(R"("total_keys_examined":4,"total_docs_examined":3)"));
}

TEST_F(TextFixture, StopWordsAreIgnoredEverywhere) {
  EXPECT_THAT(ids(R"({"selector":{"$text":"the","price":2}})"), ElementsAre("b"));
  EXPECT_THAT(ids(R"({"selector":{"$or":[{"$and":[{"$text":"the"},{"price":2}]},{"price":20}]}})"),
              ElementsAre("b", "c"));
}

TEST_F(TextFixture, ABookmarkOfAnotherOrderIsRefused) {
  const auto by_price = find(R"({"selector":{"tags":{"$size":0}},"sort":["price:number"]})");
  EXPECT_THAT(
      divan::error_of([&] {
        find(fmt::format(R"({{"selector":{{"tags":{{"$size":0}}}},"sort":["title:string"],"bookmark":{}}})",
                         *json::member(by_price, "bookmark")));
      }),
      HasSubstr("sort order not compatible"));
}

TEST_F(TextFixture, AListSortsByItsLastString) {
  EXPECT_THAT(ids(R"({"selector":{"tags":{"$elemMatch":{"$eq":"fruit"}}},"sort":["tags.[]:string"]})"),
              ElementsAre("a", "b"));
}

// Hits that do not match fill pages, too.
TEST_F(TextFixture, EveryPageGoesOnAfterTheLastOne) {
  std::vector<std::string> documents;
  for (int n = 0; n < 300; ++n)
    documents.push_back(
        fmt::format(R"({{"_id":"n{:03}","text":"pear","big":"{}","n":{}}})", n, std::string(20'000, 'x'), n));
  put_all(documents);
  build_all();
  Find find = begin(R"({"selector":{"$text":"pear","n":{"$gte":0}},"limit":1000})");
  std::string out;
  std::size_t pages = 1;
  for (; find.next(out); ++pages) {}
  EXPECT_GT(pages, 4u);
  EXPECT_THAT(ids_of(json::compact(out)), ::testing::SizeIs(300));
  EXPECT_THAT(ids(R"({"selector":{"$text":"pear","n":{"$mod":[300,299]}},"limit":1000})"),
              ElementsAre("n299"));
}

TEST_F(TextFixture, AnIndexThatWasRemovedIsAnError) {
  auto request = FindRequest::parse(R"({"selector":{"$text":"apple"}})");
  auto plan = this->plan(request);
  const auto signature = plan.index().built().signature();
  const auto sequence = store->run([&](kv::Transaction& tx) {
    return index::read_sequence(tx, index::IndexKeys(catalog.open(tx, "db"), signature),
                                kv::Isolation::snapshot);
  });
  Find find(
      {.store = *store, .catalog = catalog, .clock = clock, .database = "db", .known_sequence = sequence},
      std::move(request), std::move(plan));
  store->run([&](kv::Transaction& tx) {
    const auto range = index::IndexKeys(catalog.open(tx, "db"), signature).all();
    tx.clear_range(range.begin, range.end);
  });
  std::string out;
  EXPECT_THAT(divan::error_of([&] { find.next(out); }), HasSubstr("The index was removed"));
}

}  // namespace
}  // namespace divan::mango
