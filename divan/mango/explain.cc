#include "divan/mango/explain.h"

#include <algorithm>
#include <array>
#include <functional>

#include "divan/base/json.h"

namespace divan::mango {
namespace {

// What CouchDB shows for a key after all others.
constexpr std::string_view kMax = "\"<MAX>\"";

// Why an index was not chosen, with its rank: a greater one is less suitable.
struct Verdict {
  std::string_view reason;
  std::size_t ranking = 0;
  bool is_usable = true;
};

// Groups of candidates that were excluded for the same reason. The ranks of a group begin after those of the
// candidates that were excluded later (mango_cursor.erl, extract_candidate_indexes).
class Rankings {
 public:
  explicit Rankings(const Plan& plan) {
    std::size_t rank = 0;
    for (const auto& one : plan.candidates) rank += one.has_type ? 1 : 0;
    rank = std::max<std::size_t>(rank, 1);
    const auto next = [&](std::size_t& ranking, bool is_empty, std::size_t previous) {
      ranking = is_empty ? previous : previous + 1;
    };
    const auto none = [&](const auto& is_in) { return std::ranges::none_of(plan.candidates, is_in); };
    unfavored_ = rank;
    next(excluded_, none([](const Candidate& one) { return one.is_wanted && !one.has_type; }), unfavored_);
    next(not_usable_, none([](const Candidate& one) { return one.is_usable && !one.is_wanted; }), excluded_);
    partial_ = not_usable_;
    next(partial_, none([](const Candidate& one) { return one.is_considered && !one.is_usable; }),
         not_usable_);
  }

  Verdict verdict(const Candidate& one, const Plan& plan) const {
    Verdict verdict;
    const auto add = [&](std::string_view reason, std::size_t ranking) {
      if (verdict.reason.empty()) verdict.reason = reason;
      verdict.ranking += ranking;
    };
    verdict.is_usable = one.is_usable && !one.index.is_partial();
    if (one.index.is_partial()) add("is_partial", partial_);
    if (!one.is_in_scope) add("scope_mismatch", partial_);
    if (one.is_considered && !one.is_usable) add(one.reasons.front(), not_usable_);
    if (one.is_usable && !one.is_wanted) add("excluded_by_user", excluded_);
    if (one.is_wanted && !one.has_type) add("unfavored_type", unfavored_);
    if (one.order) add(reason_of_order(one, plan), *one.order);
    return verdict;
  }

 private:
  static std::string_view reason_of_order(const Candidate& one, const Plan& plan) {
    if (one.distance > 0) return "less_overlap";
    if (one.index.columns.size() > plan.index().columns.size()) return "too_many_fields";
    return "alphabetically_comes_after";
  }

  std::size_t unfavored_, excluded_, not_usable_, partial_;
};

void write_candidates(json::Writer& writer, const FindRequest& request, const Plan& plan) {
  const Rankings rankings(plan);
  writer.key("index_candidates").begin_array();
  for (std::size_t i = plan.candidates.size(); i-- > 0;) {
    if (plan.chosen == i) continue;
    const Candidate& one = plan.candidates[i];
    const Verdict verdict = rankings.verdict(one, plan);
    writer.begin_object().key("index");
    one.index.write(writer);
    writer.key("analysis").begin_object().key("usable").boolean(verdict.is_usable);
    writer.key("reasons").begin_array().begin_object().key("name").string(verdict.reason);
    writer.end_object().end_array();
    writer.key("ranking").number(static_cast<std::int64_t>(verdict.ranking)).key("covering");
    one.index.views ? writer.boolean(covers(one.index, request)) : writer.null();
    writer.end_object().end_object();
  }
  writer.end_array();
}

// Returns true if there is a condition on a field other than that it is missing.
bool restricts_values(const selector::Condition& condition, const selector::Path& field) {
  if (condition.op == selector::Operator::all_of || condition.op == selector::Operator::any_of)
    return std::ranges::any_of(condition.children,
                               [&](const auto& one) { return restricts_values(one, field); });
  return condition.path == field && condition.exists;
}

// The fields that an index of a type should have.
void write_hint(json::Writer& writer, const FindRequest& request, std::string_view type,
                const std::function<bool(const selector::Path&)>& is_indexable) {
  const auto fields = fields_of(request.selector.condition());
  writer.begin_object().key("type").string(type);
  for (const bool wanted : {true, false}) {
    writer.key(wanted ? "indexable_fields" : "unindexable_fields").begin_array();
    for (const auto& field : fields) {
      if (is_indexable(field) == wanted) writer.string(selector::to_field(field));
    }
    writer.end_array();
  }
  writer.end_object();
}

void write_hints(json::Writer& writer, const FindRequest& request) {
  const Ranges ranges = all_ranges_of(request.selector.condition());
  writer.key("selector_hints").begin_array();
  write_hint(writer, request, "json", [&](const selector::Path& field) { return ranges.contains(field); });
  write_hint(writer, request, "text", [&](const selector::Path& field) {
    return restricts_values(request.selector.condition(), field);
  });
  writer.end_array();
}

void write_sort(json::Writer& writer, const Sort& sort) {
  writer.begin_object();
  for (const auto& field : sort.fields) writer.key(field.name).string(sort.direction());
  writer.end_object();
}

void write_strings(json::Writer& writer, const std::vector<std::string>& strings) {
  writer.begin_array();
  for (const auto& text : strings) writer.string(text);
  writer.end_array();
}

void write_options(json::Writer& writer, const FindRequest& request) {
  writer.begin_object().key("use_index");
  write_strings(writer, request.use_index);
  writer.key("bookmark").string(request.bookmark.empty() ? "nil" : request.bookmark);
  writer.key("limit").number(static_cast<std::int64_t>(request.limit));
  writer.key("skip").number(static_cast<std::int64_t>(request.skip)).key("sort");
  write_sort(writer, request.sort);
  writer.key("fields");
  write_strings(writer, request.fields.value_or(std::vector<std::string>()));
  writer.key("partition").string(request.partition).key("r").number(static_cast<std::int64_t>(request.r));
  writer.key("conflicts").boolean(request.conflicts).key("stale");
  request.stale_ok ? writer.string("ok") : writer.boolean(false);
  writer.key("update").boolean(request.update).key("stable").boolean(request.stable);
  writer.key("execution_stats").boolean(request.execution_stats);
  writer.key("allow_fallback").boolean(request.allow_fallback).end_object();
}

void write_search_arguments(json::Writer& writer, const FindRequest& request, const Plan& plan) {
  writer.key("query").string(index::search::to_lucene(plan.text_query)).key("partition");
  request.partition.empty() ? writer.null() : writer.string(request.partition);
  writer.key("sort");
  if (plan.text_sort.empty()) {
    writer.string("relevance");
  } else {
    write_strings(writer, plan.text_sort);
  }
}

// How CouchDB would query the view.
void write_view_arguments(json::Writer& writer, const FindRequest& request, const Plan& plan) {
  auto keys = plan.has_no_results ? KeyRange{"null", "null"} : key_range(plan, kMax);
  if (keys.start.empty()) keys.start = plan.ranges.empty() ? "null" : "\"\"";
  if (keys.end.empty()) keys.end = kMax;
  if (request.sort.descending) std::swap(keys.start, keys.end);
  writer.key("mrargs").begin_object();
  writer.key("include_docs").boolean(!plan.covering && request.r == 1).key("view_type").string("map");
  writer.key("reduce").boolean(false).key("partition");
  request.partition.empty() ? writer.null() : writer.string(request.partition);
  writer.key("start_key").raw(keys.start).key("end_key").raw(keys.end);
  writer.key("direction").string(request.sort.descending ? "rev" : "fwd");
  writer.key("stable").boolean(request.stable || request.stale_ok);
  writer.key("update").boolean(request.waits_for_index()).key("conflicts");
  request.conflicts ? writer.boolean(true) : writer.string("undefined");
  writer.end_object().key("covering").boolean(plan.covering);
}

std::string array_of(const std::vector<std::string_view>& values) {
  std::string array;
  json::Writer writer(array);
  writer.begin_array();
  for (const auto value : values) writer.raw(value);
  writer.end_array();
  return array;
}

}  // namespace

KeyRange key_range(const Plan& plan, std::string_view after_all) {
  if (plan.index().is_all_documents()) {
    KeyRange keys;
    if (!plan.ranges.empty() && plan.ranges[0].low) keys.start = plan.ranges[0].low->json;
    if (!plan.ranges.empty() && plan.ranges[0].high) keys.end = plan.ranges[0].high->json;
    return keys;
  }
  std::vector<std::string_view> start, end;
  for (const auto& range : plan.ranges) {
    if (!range.low) break;
    start.push_back(range.low->json);
  }
  for (const auto& range : plan.ranges) {
    if (!range.high) break;
    end.push_back(range.high->json);
  }
  end.push_back(after_all);
  return {array_of(start), array_of(end)};
}

std::string explain(std::string_view database, const FindRequest& request, const Plan& plan,
                    bool is_partitioned) {
  std::string out, selector;
  selector::append_selector(selector, request.selector.condition());
  json::Writer writer(out);
  writer.begin_object().key("dbname").string(database).key("index");
  plan.chosen ? plan.index().write(writer) : static_cast<void>(writer.null());
  writer.key("partitioned").boolean(is_partitioned).key("selector").raw(selector).key("opts");
  write_options(writer, request);
  writer.key("limit").number(static_cast<std::int64_t>(request.limit));
  writer.key("skip").number(static_cast<std::int64_t>(request.skip)).key("fields");
  write_strings(writer, request.fields.value_or(std::vector<std::string>()));
  write_candidates(writer, request, plan);
  write_hints(writer, request);
  if (plan.chosen && plan.index().text) {
    write_search_arguments(writer, request, plan);
  } else if (plan.chosen) {
    write_view_arguments(writer, request, plan);
  }
  writer.end_object();
  return out;
}

}  // namespace divan::mango
