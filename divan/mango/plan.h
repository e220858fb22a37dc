// How a query is executed: which index it reads, and which part of it. The rules are CouchDB's
// (mango_cursor.erl, mango_idx.erl, mango_cursor_view.erl), including those that break ties, so that a query
// reads the same index as there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/mango/find_request.h"
#include "divan/mango/indexes.h"
#include "divan/mango/range.h"
#include "divan/mango/text_query.h"

namespace divan::mango {

/// An index that was considered.
struct Candidate {
  Index index;
  bool is_in_scope = true;                  // it is for queries of partitions, if this is one
  bool is_considered = false;               // in scope, and not partial or named by the query
  bool is_usable = false;                   // considered, and has all matching documents in the wanted order
  std::vector<std::string_view> reasons{};  // why it is not usable; CouchDB's names
  bool is_wanted = false;                   // usable, and not excluded by `use_index`
  bool has_type = false;                    // wanted, and of the type that is preferred
  std::optional<TextQuery> text_query{};    // what is read of a full-text index that is usable
  // If it has the type:
  std::vector<Range> ranges{};       // of its first columns, as far as the selector restricts them
  std::size_t distance = 0;          // the number of other fields that the selector restricts
  std::optional<std::size_t> order;  // its place among those of the type, the best one first
};

/// A value type.
struct Plan {
  std::vector<Candidate> candidates{};
  std::optional<std::size_t> chosen{};   // the number of a candidate; nullopt: no index is usable
  std::vector<Range> ranges{};           // of the first columns of the chosen index
  index::search::Query text_query{};     // of the chosen full-text index
  std::vector<std::string> text_sort{};  // of its results; empty: by relevance
  bool has_no_results = false;           // the ranges are contradictory
  bool covering = false;                 // rows have all fields that are needed: documents are not read

  const Index& index() const { return candidates[*chosen].index; }
};

/// Plans a query over these indexes. With `must_run`, throws CouchDB's errors (400) if there is no usable
/// index: no_usable_index. Throws invalid_index if no fallback to another index than the query names is
/// allowed; multiple_text_indexes if several full-text indexes are usable, and the query names none; and
/// text_sort_error.
/// `is_partitioned`: the database's documents are in partitions; then a query of one uses indexes that are
/// partitioned, and other queries the others. Throws bad_request for a query of a partition in another
/// database.
Plan make_plan(const FindRequest& request, std::vector<Index> indexes, bool must_run,
               bool is_partitioned = false);

/// Why a query may be slow, or used another index than it names; empty if there is no such reason.
/// `examined`: the documents that were read; above `threshold` for each of the `results` there is a warning,
/// unless it is 0.
std::string warning_of(const FindRequest& request, const Plan& plan, std::uint64_t examined,
                       std::uint64_t results, std::uint64_t threshold);

/// The default of the setting [mango] index_scan_warning_threshold.
inline constexpr std::uint64_t kScanWarningThreshold = 10;

/// Returns true if the fields that the query returns and tests are columns of the index, or `_id`.
bool covers(const Index& index, const FindRequest& request);

}  // namespace divan::mango
