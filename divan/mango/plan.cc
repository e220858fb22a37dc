#include "divan/mango/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <climits>
#include <tuple>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::mango {
namespace {

using selector::Condition;
using selector::Operator;
using selector::Path;

bool is_prefix(const std::vector<Path>& prefix, const std::vector<Path>& of) {
  return prefix.size() <= of.size() && std::equal(prefix.begin(), prefix.end(), of.begin());
}

// Returns true if rows in the order of the columns are in the wanted order. Columns whose value is the same
// in all results do not matter before the first field of the order.
bool is_sorted(const std::vector<Path>& columns, const std::vector<Path>& wanted,
               const Condition& condition) {
  if (wanted.empty()) return true;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == wanted.front())
      return is_prefix(wanted, {columns.begin() + static_cast<std::ptrdiff_t>(i), columns.end()});
    if (!is_constant(condition, columns[i])) return false;
  }
  return false;
}

// An index lacks documents without one of its fields.
bool has_all_matches(const Index& index, const std::vector<Path>& sort, const Condition& condition) {
  std::vector<Path> required;
  for (const auto& column : index.columns) {
    const bool always_exists = column == Path{"_id"} || column == Path{"_rev"};
    if (!always_exists && std::ranges::find(sort, column) == sort.end()) required.push_back(column);
  }
  return requires_fields(condition, std::move(required));
}

void check_text_index(Candidate& candidate, const FindRequest& request) {
  const auto& condition = request.selector.condition();
  const auto& index = *candidate.index.text;
  candidate.text_query = text_query(condition, *index.text_map(), index.analyzer());
  if (condition.op == Operator::always) {
    candidate.reasons.push_back("empty_selector");
  } else if (!candidate.text_query) {
    candidate.reasons.push_back("field_mismatch");
  }
  if (!has_sort_fields(request.sort, condition, *index.text_map()))
    candidate.reasons.push_back("sort_order_mismatch");
}

void check_index(Candidate& candidate, const FindRequest& request, const Ranges& ranges) {
  const auto& condition = request.selector.condition();
  const auto sort = request.sort.paths();
  const Index& index = candidate.index;
  bool has_fields = true;
  bool has_order = true;
  if (has_text(condition)) candidate.reasons.push_back("needs_text_search");
  if (!index.is_all_documents()) {
    has_fields = has_all_matches(index, sort, condition);
    has_order = is_sorted(index.columns, sort, condition);
  } else if (!sort.empty()) {
    has_fields = ranges.contains({"_id"});
    has_order = is_prefix(sort, index.columns);
  }
  if (!has_fields) candidate.reasons.push_back("field_mismatch");
  if (!has_order) candidate.reasons.push_back("sort_order_mismatch");
}

void check_usability(Candidate& candidate, const FindRequest& request, const Ranges& ranges) {
  if (candidate.index.text) {
    check_text_index(candidate, request);
  } else {
    check_index(candidate, request, ranges);
  }
  candidate.is_usable = candidate.reasons.empty();
}

bool is_named(const Index& index, const FindRequest& request) {
  if (request.use_index.empty() || index.is_all_documents()) return false;
  return index.design_document == request.wanted_design() &&
         (request.use_index.size() == 1 || index.name == request.use_index[1]);
}

// The name in CouchDB's messages.
std::string shown_name(const FindRequest& request) {
  std::string name = request.wanted_design();
  if (request.use_index.size() > 1) name += ", " + request.use_index[1];
  return name;
}

void reject_missing_index(const FindRequest& request) {
  if (request.use_index.empty())
    throw Error(400, "invalid_index", "You must specify an index with the `use_index` parameter.");
  throw Error(400, "invalid_index",
              fmt::format("{} specified by `use_index` could not be found or it is not suitable.",
                          shown_name(request)));
}

// Chooses the candidates that `use_index` names, or all usable ones if that is allowed.
void choose_wanted(const FindRequest& request, std::vector<Candidate>& candidates) {
  const auto usable = std::ranges::count_if(candidates, &Candidate::is_usable);
  bool any_named = false;
  for (auto& candidate : candidates) {
    candidate.is_wanted = candidate.is_usable && is_named(candidate.index, request);
    any_named = any_named || candidate.is_wanted;
  }
  if (any_named) return;
  if (!request.allow_fallback && !(request.use_index.empty() && usable > 1)) reject_missing_index(request);
  for (auto& candidate : candidates) candidate.is_wanted = candidate.is_usable;
}

// The ranges of the first columns, up to one that is not restricted.
std::vector<Range> prefix_of(const Index& index, const Ranges& ranges) {
  std::vector<Range> prefix;
  for (const auto& column : index.columns) {
    const auto found = ranges.find(column);
    if (found == ranges.end()) break;
    prefix.push_back(found->second);
    // Rows are not in the byte order of ids, in which the conditions of selectors are.
    if (column == Path{"_id"} && !index.is_all_documents() && !prefix.back().is_one_value())
      prefix.back().low = prefix.back().high = std::nullopt;
  }
  return prefix;
}

// Returns true if only some of all documents are read.
bool restricts_ids(const Ranges& ranges) {
  const auto found = ranges.find({"_id"});
  if (found == ranges.end()) return false;
  const auto& [low, high, is_empty] = found->second;
  return high || (low && json::string_value(low->json));
}

// Types of indexes in the order in which they are preferred. CouchDB prefers a full-text index to all
// documents in any case.
int rank_of(const Candidate& candidate, const Ranges& ranges) {
  if (candidate.index.views) return 0;
  if (candidate.index.is_all_documents()) return 2;
  return candidate.text_query->is_selective && !restricts_ids(ranges) ? 1 : 3;
}

// Orders the candidates of the preferred type; the first one is chosen.
void choose_best(Plan& plan, const Ranges& ranges) {
  auto& candidates = plan.candidates;
  int rank = INT_MAX;
  for (const auto& candidate : candidates) {
    if (candidate.is_wanted) rank = std::min(rank, rank_of(candidate, ranges));
  }
  std::vector<std::size_t> of_type;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate& candidate = candidates[i];
    candidate.has_type = candidate.is_wanted && rank_of(candidate, ranges) == rank;
    if (!candidate.has_type) continue;
    candidate.ranges = prefix_of(candidate.index, ranges);
    candidate.distance = ranges.size() - candidate.ranges.size();
    of_type.push_back(i);
  }
  std::ranges::sort(of_type, {}, [&](std::size_t i) {
    const auto& [index, distance] = std::tie(candidates[i].index, candidates[i].distance);
    return std::tuple(distance, index.columns.size(), index.design_document, index.name);
  });
  for (std::size_t place = 0; place < of_type.size(); ++place) candidates[of_type[place]].order = place;
  if (of_type.empty()) return;
  if (of_type.size() > 1 && candidates[of_type.front()].index.text)
    throw Error(400, "multiple_text_indexes", "You must specify an index with the `use_index` parameter.");
  plan.chosen = of_type.front();
  plan.ranges = candidates[*plan.chosen].ranges;
}

// What is read of a full-text index.
void plan_text(Plan& plan, const FindRequest& request) {
  const auto& condition = request.selector.condition();
  plan.text_query = plan.candidates[*plan.chosen].text_query->query;
  if (!request.partition.empty())
    plan.text_query = index::search::in_partition(std::move(plan.text_query), request.partition);
  plan.text_sort = text_sort(request.sort, condition);
}

Error no_usable_index(const FindRequest& request, const Plan& plan, bool is_partitioned) {
  if (has_text(request.selector.condition())) {
    const bool any =
        std::ranges::any_of(plan.candidates, [](const auto& one) { return one.index.text != nullptr; });
    return {400, "no_usable_index",
            any ? "No text index can serve this query: _explain says why. A partial index must be named with "
                  "`use_index`."
                : "There is no text index, which $text needs."};
  }
  const auto* const kind = !is_partitioned ? "" : request.partition.empty() ? "global " : "partitioned ";
  return {400, "no_usable_index",
          fmt::format("No {}index exists for this sort, try indexing by the sort fields.", kind)};
}

// As in CouchDB, a selector that is nothing but an empty list matches nothing.
bool is_empty_list(const Condition& condition) {
  return (condition.op == Operator::all_of || condition.op == Operator::any_of) && condition.children.empty();
}

}  // namespace

Plan make_plan(const FindRequest& request, std::vector<Index> indexes, bool must_run, bool is_partitioned) {
  if (!request.partition.empty() && !is_partitioned)
    throw bad_request("`partition` is not supported on this db");
  const auto& condition = request.selector.condition();
  const Ranges ranges = ranges_of(condition);
  Plan plan;
  for (auto& index : indexes) {
    Candidate& candidate = plan.candidates.emplace_back(Candidate{.index = std::move(index)});
    candidate.is_in_scope =
        candidate.index.is_all_documents() || candidate.index.is_partitioned() == !request.partition.empty();
    candidate.is_considered =
        candidate.is_in_scope && (!candidate.index.is_partial() || is_named(candidate.index, request));
    if (candidate.is_considered) check_usability(candidate, request, ranges);
  }
  if (must_run && std::ranges::none_of(plan.candidates, &Candidate::is_usable))
    throw no_usable_index(request, plan, is_partitioned);
  choose_wanted(request, plan.candidates);
  choose_best(plan, ranges);
  if (plan.chosen && plan.index().text) plan_text(plan, request);
  plan.has_no_results = is_empty_list(condition) ||
                        std::ranges::any_of(plan.ranges, [](const Range& range) { return range.is_empty; });
  plan.covering = plan.chosen && covers(plan.index(), request);
  return plan;
}

bool covers(const Index& index, const FindRequest& request) {
  if (!request.fields || !index.views) return false;
  const auto is_available = [&](const Path& field) {
    return field == Path{"_id"} || std::ranges::find(index.columns, field) != index.columns.end();
  };
  return std::ranges::all_of(*request.fields,
                             [&](const auto& name) { return is_available(selector::parse_path(name)); }) &&
         std::ranges::all_of(fields_of(request.selector.condition()), is_available);
}

std::string warning_of(const FindRequest& request, const Plan& plan, std::uint64_t examined,
                       std::uint64_t results, std::uint64_t threshold) {
  std::string warning;
  const auto add = [&](std::string_view reason) {
    if (!warning.empty()) warning += '\n';
    warning += reason;
  };
  if (!request.use_index.empty() && !is_named(plan.index(), request))
    add(fmt::format(
        "{} was not used because it {} for this query.", shown_name(request),
        request.use_index.size() == 1 ? "does not contain a valid index" : "is not a valid index"));
  if (plan.index().is_all_documents())
    add("No matching index found, create an index to optimize query time.");
  if (threshold > 0 && examined > threshold * std::max<std::uint64_t>(results, 1))
    add("The number of documents examined is high in proportion to the number of results returned. Consider "
        "adding a more specific index to improve this.");
  return warning;
}

}  // namespace divan::mango
