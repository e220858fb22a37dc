#include "divan/mango/find.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "divan/collation/collation.h"
#include "divan/index/views/views_testing.h"
#include "divan/mango/testing.h"

namespace divan::mango {
namespace {

using ::testing::HasSubstr;

struct FindFixture : index::views::testing::ViewsFixture {
  void define(const std::string& fields, std::string_view filter = "{}") {
    std::string body = testing::Definitions::design(fields, filter);
    put(R"({"_id":"_design/)" + fields + "\"," + body.substr(1));
  }
  void build_all() {
    const auto indexes =
        store->run([&](kv::Transaction& tx) { return index::indexes_of(tx, catalog.open(tx, "db"), kinds); });
    for (const auto& index : indexes) {
      store->run([&](kv::Transaction& tx) {
        request_build(queue, tx, catalog.open(tx, "db"), *index, index::kQueryPriority, nullptr);
      });
    }
    for (const auto& job : accept(indexes.size())) builder->run(job);
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
    return fmt::format(R"({{"{}":{}}})", pick({"a", "b", "c"}), condition());
  }

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_.next() % bound); }
  std::string pick(std::initializer_list<const char*> from) {
    return *(from.begin() + below(static_cast<std::uint32_t>(from.size())));
  }

 private:
  std::string value() {
    return pick({"1", "2", "2.0", "-3", "null", "true", R"("x")", R"("X")", R"("xé")", R"("y")", "[1]",
                 "[1,2]", R"({"x":1})"});
  }
  std::string condition() {
    switch (below(8)) {
      case 0: return fmt::format(R"({{"$in":[{},{}]}})", value(), value());
      case 1: return fmt::format(R"({{"$exists":{}}})", pick({"true", "false"}));
      case 2: return fmt::format(R"({{"$beginsWith":"{}"}})", pick({"x", "X", ""}));
      case 3: return value();
      case 4: return fmt::format(R"({{"$not":{{"$gt":{}}}}})", value());
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
    std::size_t by_index = 0;
    for (int round = 0; round < 150; ++round) {
      const std::string selector = model.selector();
      const bool descending = model.below(2) == 1;
      const std::uint64_t limit = 1 + model.below(2 * kDocuments);
      const auto wanted = expected(selector);
      for (std::size_t i = 0; i < indexes.size(); ++i) {
        auto request = FindRequest::parse(fmt::format(R"({{"selector":{}}})", selector));
        const auto plan = plan_with(request, indexes, i);
        if (!plan) continue;
        by_index += i > 0 ? 1 : 0;
        request.sort.descending = descending;  // the order of rows, whatever the fields
        auto found = pages(request, *plan, limit);
        std::ranges::sort(found);
        ASSERT_EQ(found, wanted) << "seed " << seed << ", " << selector << " with " << indexes[i].name
                                 << ", descending " << descending << ", limit " << limit;
      }
    }
    EXPECT_GT(by_index, 100u);
  }
}

}  // namespace
}  // namespace divan::mango
