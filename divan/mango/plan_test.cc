#include "divan/mango/plan.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/error_testing.h"
#include "divan/mango/explain.h"
#include "divan/mango/testing.h"

namespace divan::mango {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FindRequest request_of(std::string_view json) { return FindRequest::parse(json::compact(json)); }
FindRequest selecting(std::string_view selector) {
  return request_of(fmt::format(R"({{"selector":{}}})", selector));
}

std::string shown(const std::optional<Range::Bound>& bound) {
  return bound ? bound->json + (bound->inclusive ? "" : "*") : "-";
}

// "field: low high", with * after exclusive bounds.
std::vector<std::string> ranges(std::string_view selector) {
  std::vector<std::string> out;
  for (const auto& [field, range] : ranges_of(selecting(selector).selector.condition())) {
    const std::string bounds = range.is_empty ? "empty" : shown(range.low) + " " + shown(range.high);
    out.push_back(selector::to_field(field) + ": " + bounds);
  }
  return out;
}

TEST(Range, IsTheIntersectionOfComparisons) {
  EXPECT_THAT(ranges("{}"), ElementsAre());
  EXPECT_THAT(ranges(R"({"a":1})"), ElementsAre("a: 1 1"));
  EXPECT_THAT(ranges(R"({"a":{"$gt":1,"$lte":3}})"), ElementsAre("a: 1* 3"));
  EXPECT_THAT(ranges(R"({"a":{"$gt":1,"$gte":1}})"), ElementsAre("a: 1* -"));
  EXPECT_THAT(ranges(R"({"a":{"$gt":1},"b":{"c":{"$lt":"x"}}})"), ElementsAre("a: 1* -", R"(b.c: - "x"*)"));
  EXPECT_THAT(ranges(R"({"$and":[{"a":{"$gt":1}},{"a":{"$lt":5}},{"a":{"$gt":2}}]})"),
              ElementsAre("a: 2* 5*"));
  EXPECT_THAT(ranges(R"({"a":{"$not":{"$lt":1}}})"), ElementsAre("a: 1 -"));
  EXPECT_THAT(ranges(R"({"a":{"$exists":true}})"), ElementsAre("a: - -"));
  EXPECT_THAT(ranges(R"({"a":{"$beginsWith":"x"}})"), ElementsAre("a: \"x\" \"x\uffff\""));
  EXPECT_THAT(ranges(R"({"_id":{"$beginsWith":"x"}})"), ElementsAre("_id: \"x\" \"x\U0010ffff\""));
}

TEST(Range, IsOfConditionsThatMustMatch) {
  EXPECT_THAT(ranges(R"({"$or":[{"a":1},{"a":2}]})"), ElementsAre());
  EXPECT_THAT(ranges(R"({"a":{"$in":[1]}})"), ElementsAre());
  EXPECT_THAT(ranges(R"({"a":{"$ne":1}})"), ElementsAre());
  EXPECT_THAT(ranges(R"({"a":{"$not":{"$beginsWith":"x"}}})"), ElementsAre());
  EXPECT_THAT(ranges(R"({"a":{"$elemMatch":{"$eq":1}}})"), ElementsAre());
}

TEST(Range, OfAContradictionIsEmpty) {
  EXPECT_THAT(ranges(R"({"a":{"$gt":1,"$lt":1}})"), ElementsAre("a: empty"));
  EXPECT_THAT(ranges(R"({"a":{"$gt":1,"$lte":1}})"), ElementsAre("a: empty"));
  EXPECT_THAT(ranges(R"({"a":{"$gte":1,"$lte":1}})"), ElementsAre("a: 1 1"));
  EXPECT_THAT(ranges(R"({"a":{"$gt":"x","$lt":3}})"), ElementsAre("a: empty"));
  EXPECT_THAT(ranges(R"({"a":1,"b":{"$eq":1,"$gt":1}})"), ElementsAre("b: empty"));
}

class Plans : public ::testing::Test {
 protected:
  Plan plan(std::string_view request, const std::vector<std::string>& indexes, bool must_run = true) {
    return make_plan(request_of(request), definitions_.all(indexes), must_run);
  }
  // The name of the index that a query with this selector reads.
  std::string chosen(std::string_view selector, const std::vector<std::string>& indexes) {
    return plan(fmt::format(R"({{"selector":{}}})", selector), indexes).index().name;
  }
  std::string chosen_by(std::string_view request, const std::vector<std::string>& indexes) {
    return plan(request, indexes).index().name;
  }
  std::string refusal(std::string_view request, const std::vector<std::string>& indexes) {
    try {
      return "none: " + plan(request, indexes).index().name;
    } catch (const Error& error) { return error.what(); }
  }
  std::string keys(std::string_view request, const std::vector<std::string>& indexes) {
    const auto range = key_range(plan(request, indexes), "\"MAX\"");
    return range.start + " " + range.end;
  }

  testing::Definitions definitions_;
};

TEST_F(Plans, AnIndexMustHaveAllMatches) {
  EXPECT_EQ(chosen(R"({"a":1})", {"a", "b"}), "a");
  EXPECT_EQ(chosen(R"({"a":1})", {"a,b"}), "_all_docs");
  EXPECT_EQ(chosen(R"({"a":1,"b":2})", {"a,b"}), "a,b");
  EXPECT_EQ(chosen(R"({"a":1,"b":{"$exists":true}})", {"a,b"}), "a,b");
  EXPECT_EQ(chosen(R"({"a":1,"b":{"$exists":false}})", {"a,b"}), "_all_docs");
  EXPECT_EQ(chosen(R"({"a":{"$in":[1]}})", {"a"}), "a");
  EXPECT_EQ(chosen(R"({"$or":[{"a":1},{"a":2}]})", {"a"}), "a");
  EXPECT_EQ(chosen(R"({"$or":[{"a":1},{"b":2}]})", {"a"}), "_all_docs");
  EXPECT_EQ(chosen(R"({"$or":[{"a":1,"b":1},{"b":2}]})", {"a", "b"}), "b");
  EXPECT_EQ(chosen(R"({"b":1,"$or":[]})", {"a"}), "_all_docs");
  EXPECT_EQ(chosen(R"({"a":1})", {"a,_id"}), "a,_id");
  EXPECT_EQ(chosen("{}", {"a"}), "_all_docs");
}

TEST_F(Plans, TheIndexWithTheMostRestrictedFieldsIsChosen) {
  EXPECT_EQ(chosen(R"({"a":1,"b":2})", {"a", "a,b", "b"}), "a,b");
  EXPECT_EQ(chosen(R"({"a":1,"b":2,"c":{"$ne":1}})", {"a", "a,b,c"}), "a,b,c");
  EXPECT_EQ(chosen(R"({"a":1,"b":{"$ne":1}})", {"b", "a,b"}), "a,b");
  // Then the one with the fewest columns, and the first by name.
  EXPECT_EQ(chosen(R"({"a":1,"b":{"$ne":1}})", {"a,b", "a"}), "a");
  EXPECT_EQ(chosen(R"({"a":1,"b":1})", {"b", "a"}), "a");
}

TEST_F(Plans, RowsMustBeInOrder) {
  const auto sorted = [&](std::string_view selector, std::string_view sort) {
    return refusal(fmt::format(R"({{"selector":{},"sort":{}}})", selector, sort), {"a", "a,b", "a,b,c"});
  };
  EXPECT_EQ(sorted(R"({"a":{"$gt":1}})", R"(["a"])"), "none: a");
  EXPECT_EQ(sorted("{}", R"(["a"])"), "none: a");
  EXPECT_EQ(sorted("{}", R"(["a","b"])"), "none: a,b");
  EXPECT_EQ(sorted(R"({"a":1})", R"(["b"])"), "none: a,b");
  EXPECT_EQ(sorted(R"({"a":1,"b":2})", R"(["c"])"), "none: a,b,c");
  EXPECT_THAT(sorted(R"({"a":{"$gt":1}})", R"(["b"])"), HasSubstr("no_usable_index"));
  EXPECT_THAT(sorted("{}", R"(["b"])"), HasSubstr("no_usable_index"));
  EXPECT_THAT(sorted("{}", R"(["_id"])"), HasSubstr("no_usable_index"));
  EXPECT_EQ(sorted(R"({"_id":{"$gt":null}})", R"(["_id"])"), "none: _all_docs");
}

TEST_F(Plans, AQueryMayNameItsIndex) {
  const std::vector<std::string> indexes{"a", "b"};
  EXPECT_EQ(chosen_by(R"({"selector":{"a":1,"b":1},"use_index":"b"})", indexes), "b");
  EXPECT_EQ(chosen_by(R"({"selector":{"a":1,"b":1},"use_index":["_design/b","b"]})", indexes), "b");
  EXPECT_EQ(chosen_by(R"({"selector":{"a":1},"use_index":"b"})", indexes), "a");
  EXPECT_EQ(refusal(R"({"selector":{"a":1},"use_index":"b","allow_fallback":false})", indexes),
            "invalid_index: _design/b specified by `use_index` could not be found or it is not suitable.");
  EXPECT_EQ(refusal(R"({"selector":{"a":1},"use_index":["b","x"],"allow_fallback":false})", indexes),
            "invalid_index: _design/b, x specified by `use_index` could not be found or it is not suitable.");
  EXPECT_EQ(refusal(R"({"selector":{"c":1},"allow_fallback":false})", indexes),
            "invalid_index: You must specify an index with the `use_index` parameter.");
  EXPECT_EQ(refusal(R"({"selector":{"a":1},"allow_fallback":false})", indexes), "none: a");
}

TEST_F(Plans, APartialIndexMustBeNamed) {
  const std::vector<Index> indexes{Index(), definitions_.one("a", R"({"b":1})")};
  EXPECT_EQ(make_plan(selecting(R"({"a":1})"), indexes, true).index().name, "_all_docs");
  EXPECT_EQ(make_plan(request_of(R"({"selector":{"a":1},"use_index":"a"})"), indexes, true).index().name,
            "a");
}

TEST_F(Plans, KeysBeginWithTheRestrictedColumns) {
  EXPECT_EQ(keys(R"({"selector":{"a":1}})", {"a"}), R"([1] [1,"MAX"])");
  EXPECT_EQ(keys(R"({"selector":{"a":1,"b":{"$gt":2}}})", {"a,b"}), R"([1,2] [1,"MAX"])");
  EXPECT_EQ(keys(R"({"selector":{"a":{"$lt":1},"b":{"$gt":2}}})", {"a,b"}), R"([] [1,"MAX"])");
  EXPECT_EQ(keys(R"({"selector":{"b":2,"a":{"$ne":1}}})", {"a,b"}), R"([] ["MAX"])");
  EXPECT_EQ(keys(R"({"selector":{"_id":{"$gt":"x"}}})", {}), R"("x" )");
}

TEST_F(Plans, AnIndexCoversQueriesOfItsColumns) {
  const auto covering = [&](std::string_view members) {
    return plan(fmt::format(R"({{"selector":{{"a":1,"b":2}}{}}})", members), {"a,b"}).covering;
  };
  EXPECT_TRUE(covering(R"(,"fields":["_id","b"])"));
  EXPECT_FALSE(covering(R"(,"fields":["_id","c"])"));
  EXPECT_FALSE(covering(R"(,"fields":["_rev"])"));
  EXPECT_FALSE(covering(""));
}

TEST_F(Plans, ContradictionsHaveNoResults) {
  EXPECT_TRUE(plan(R"({"selector":{"a":{"$gt":1,"$lt":1}}})", {"a"}).has_no_results);
  EXPECT_TRUE(plan(R"({"selector":{"$or":[]}})", {"a"}).has_no_results);
  EXPECT_FALSE(plan(R"({"selector":{"a":1,"$or":[]}})", {"a"}).has_no_results);
}

TEST_F(Plans, WarningsNameWhatIsSlow) {
  const auto warning = [&](std::string_view request, std::uint64_t examined, std::uint64_t results) {
    return warning_of(request_of(request), plan(request, {"a"}), examined, results, 10);
  };
  EXPECT_EQ(warning(R"({"selector":{"a":1}})", 10, 1), "");
  EXPECT_THAT(warning(R"({"selector":{"a":1}})", 11, 1), HasSubstr("documents examined is high"));
  EXPECT_EQ(warning(R"({"selector":{"b":1}})", 1, 1),
            "No matching index found, create an index to optimize query time.");
  EXPECT_EQ(warning(R"({"selector":{"a":1},"use_index":"x"})", 1, 1),
            "_design/x was not used because it does not contain a valid index for this query.");
  EXPECT_EQ(warning(R"({"selector":{"a":1},"use_index":["a","y"]})", 1, 1),
            "_design/a, y was not used because it is not a valid index for this query.");
}

// "name usable reason ranking" of each index that was not chosen.
std::vector<std::string> candidates(const FindRequest& request, const Plan& plan) {
  std::vector<std::string> out;
  const std::string text = explain("db", request, plan);
  json::for_each_element(*json::member(text, "index_candidates"), [&](std::string_view one) {
    const auto index = *json::member(one, "index");
    const auto analysis = *json::member(one, "analysis");
    const auto reasons = *json::member(analysis, "reasons");
    out.push_back(fmt::format("{} {} {} {}", *json::member(index, "name"), *json::member(analysis, "usable"),
                              reasons, *json::member(analysis, "ranking")));
    return true;
  });
  return out;
}

TEST_F(Plans, ExplainSaysWhyOtherIndexesWereNotChosen) {
  const auto request = selecting(R"({"a":1,"b":2})");
  auto indexes = definitions_.all({"a", "a,b", "a,c", "b"});
  indexes.push_back(definitions_.one("z", R"({"b":1})"));
  const auto plan = make_plan(request, indexes, false);
  EXPECT_EQ(plan.index().name, "a,b");
  EXPECT_THAT(candidates(request, plan), ElementsAre(R"("z" false [{"name":"is_partial"}] 5)",        //
                                                     R"("b" true [{"name":"less_overlap"}] 2)",       //
                                                     R"("a,c" false [{"name":"field_mismatch"}] 4)",  //
                                                     R"("a" true [{"name":"less_overlap"}] 1)",       //
                                                     R"("_all_docs" true [{"name":"unfavored_type"}] 3)"));
  const auto named = request_of(R"({"selector":{"a":1,"b":2},"use_index":"b"})");
  EXPECT_THAT(candidates(named, make_plan(named, indexes, false)),
              ElementsAre(HasSubstr("is_partial"), HasSubstr("field_mismatch"), HasSubstr("excluded_by_user"),
                          HasSubstr("excluded_by_user"), HasSubstr("excluded_by_user")));
  const auto sorted = request_of(R"({"selector":{"a":{"$gt":1}},"sort":["x"]})");
  const auto none = make_plan(sorted, indexes, false);
  EXPECT_FALSE(none.chosen);
  EXPECT_THAT(explain("db", sorted, none), HasSubstr(R"("index":null)"));
}

struct TextPlans : ::testing::Test {
  Plan plan(const FindRequest& request, std::vector<Index> indexes, bool must_run = true) {
    return make_plan(request, std::move(indexes), must_run);
  }
  static std::vector<std::string_view> reasons(const Plan& plan, std::size_t number) {
    return plan.candidates[number].reasons;
  }
  testing::Definitions definitions;
};

TEST_F(TextPlans, AViewIsPreferred) {
  auto indexes = definitions.all({"a"});
  indexes.push_back(definitions.text("_design/t", "{}"));
  EXPECT_EQ(plan(selecting(R"({"a":1})"), indexes).index().design_document, "_design/a");
  const auto other = plan(selecting(R"({"b":1})"), indexes);
  EXPECT_EQ(other.index().type(), "text");
  const auto explained = explain("db", selecting(R"({"b":1})"), other);
  EXPECT_THAT(explained, HasSubstr(R"("query":"b_3anumber:\"1\"^0","partition":null,"sort":"relevance"})"));
  EXPECT_THAT(explained, HasSubstr(R"("reasons":[{"name":"unfavored_type"}],"ranking":1,"covering":null)"));
  EXPECT_THAT(explained, HasSubstr(R"({"type":"text","indexable_fields":["b"],"unindexable_fields":[]})"));
}

TEST_F(TextPlans, TextNeedsAFullTextIndex) {
  auto indexes = definitions.all({"a"});
  const auto request = selecting(R"({"$text":"x","a":1})");
  EXPECT_THAT(divan::error_of([&] { plan(request, indexes); }),
              HasSubstr("no_usable_index: There is no text index"));
  indexes.push_back(definitions.text("_design/t", "{}"));
  const auto found = plan(request, indexes);
  EXPECT_EQ(found.index().design_document, "_design/t");
  EXPECT_THAT(reasons(found, 0), ElementsAre("needs_text_search"));
  EXPECT_THAT(reasons(found, 1), ElementsAre("needs_text_search"));
}

TEST_F(TextPlans, AllDocumentsArePreferredToManyOfThem) {
  std::vector<Index> indexes(1);
  indexes.push_back(definitions.text("_design/t", "{}"));
  const auto type = [&](std::string_view request) {
    return plan(request_of(request), indexes).index().type();
  };
  EXPECT_EQ(type(R"({"selector":{"a":{"$ne":1}}})"), "special");
  EXPECT_EQ(type(R"({"selector":{"a":{"$ne":1}},"sort":["a:number"]})"), "text");
  EXPECT_EQ(type(R"({"selector":{"a":1,"_id":{"$gt":"x"}}})"), "special");
  EXPECT_EQ(type(R"({"selector":{"a":1,"_id":{"$gt":null}}})"), "text");
  EXPECT_EQ(type(R"({"selector":{"_id":{"$gt":null}},"sort":["_id"]})"), "special");
  EXPECT_EQ(type(R"({"selector":{"$text":"x","_id":{"$gt":"x"}}})"), "text");
}

TEST_F(TextPlans, OneOfSeveralIsNamed) {
  std::vector<Index> indexes(1);
  for (const auto* design : {"_design/s", "_design/t"}) indexes.push_back(definitions.text(design, "{}"));
  EXPECT_THAT(divan::error_of([&] { plan(selecting(R"({"a":1})"), indexes); }),
              HasSubstr("multiple_text_indexes"));
  const auto named = request_of(R"({"selector":{"a":1},"use_index":"t"})");
  EXPECT_EQ(plan(named, indexes).index().design_document, "_design/t");
}

TEST_F(TextPlans, OneThatLacksFieldsIsNotUsed) {
  std::vector<Index> indexes(1);
  indexes.push_back(definitions.text("_design/t", R"({"fields":[{"name":"a","type":"string"}]})"));
  indexes.push_back(definitions.text("_design/p", R"({"partial_filter_selector":{"p":1}})"));
  EXPECT_TRUE(plan(selecting(R"({"b":1})"), indexes).index().is_all_documents());
  EXPECT_THAT(reasons(plan(selecting("{}"), indexes), 1), ElementsAre("empty_selector"));
  const auto sorted = request_of(R"({"selector":{"a":"x"},"sort":["b:number"]})");
  EXPECT_THAT(divan::error_of([&] { plan(sorted, indexes); }), HasSubstr("no_usable_index"));
  EXPECT_THAT(divan::error_of([&] { plan(selecting(R"({"$or":[{"$text":"x"},{"b":1}]})"), indexes); }),
              HasSubstr("No text index can serve this query"));
  const auto partial = request_of(R"({"selector":{"b":1},"use_index":"p"})");
  EXPECT_EQ(plan(partial, indexes).index().design_document, "_design/p");
}

TEST_F(TextPlans, AQueryOfAPartitionNeedsAPartitionedIndex) {
  auto index = definitions.text("_design/t", "{}");
  auto request = request_of(R"({"selector":{"a":1},"partition":"p"})");
  // Without a database, an index is not partitioned.
  EXPECT_TRUE(make_plan(request, {Index(), index}, true, true).index().is_all_documents());
}

}  // namespace
}  // namespace divan::mango
