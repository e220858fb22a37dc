// The parameters of a view query (https://docs.couchdb.org/en/stable/api/ddoc/views.html).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/error.h"
#include "divan/collation/collation.h"

namespace divan::index::views {

using collation::Collation;

enum class Update {
  wait,   // update=true: the response includes all changes before the request
  never,  // update=false: the index as it is
  lazy,   // the index as it is; requests a build
};

struct ViewParams {
  // Keys are JSON in json::compact()'s form.
  std::optional<std::vector<std::string>> keys;  // if it has one key, start_key and end_key are set, too
  std::optional<std::string> start_key;
  std::optional<std::string> end_key;
  std::optional<std::string> start_key_doc_id;
  std::optional<std::string> end_key_doc_id;
  bool inclusive_end = true;
  bool descending = false;
  std::uint64_t skip = 0;
  std::optional<std::uint64_t> limit;
  std::optional<bool> reduce;
  std::optional<bool> group;                 // by the whole key, unless group_level is set
  std::optional<std::uint64_t> group_level;  // by the first elements of array keys; 0: one group
  bool include_docs = false;
  std::optional<bool> conflicts;
  bool attachments = false;        // with `include_docs`: their data
  bool att_encoding_info = false;  // with `include_docs`, without `attachments`: their encodings
  bool update_seq = false;
  std::optional<std::string> partition;  // only its rows
  bool sorted = true;  // false: omits `total_rows` and `offset`; rows are sorted all the same
  Update update = Update::wait;
};

/// Sets a parameter by CouchDB's name; `text` is the decoded value of a URL parameter. Ignores unknown names.
/// Throws query_parse_error (400).
void set_param(ViewParams& params, std::string_view name, std::string_view text);

/// Sets the parameters from a request's body, a JSON object. Throws query_parse_error or bad_request.
void set_params_from_body(ViewParams& params, std::string_view json);

/// Converts `keys` with a single key to the equivalent range.
ViewParams one_key_as_range(ViewParams params);

/// Throws query_parse_error if `keys` is combined with a range. An empty `keys` can be combined with any
/// range.
void check_keys(const ViewParams& params);

/// Throws query_parse_error if the parameters contradict each other or the view. `view_reduces`: whether the
/// view has a reduce function; `collation`: the order of its keys; `is_partitioned`: whether it is queried by
/// partition.
void check_params(const ViewParams& params, bool view_reduces, Collation collation,
                  bool is_partitioned = false);

/// The same for a listing of documents or databases, which has a view's parameters but no reduce function.
/// `may_be_partition`: whether the documents of a partition can be listed.
void check_listing_params(const ViewParams& params, bool may_be_partition = false);

/// The error for a partition of what has none.
Error no_partitions();

/// The number of elements of array keys by which rows are grouped: 0, one group; UINT64_MAX, by the whole
/// key.
inline std::uint64_t group_level(const ViewParams& params) {
  return params.group_level.value_or(params.group.value_or(false) ? UINT64_MAX : 0);
}

/// Returns true if the view's rows are to be reduced.
inline bool reduces(const ViewParams& params, bool view_reduces) {
  return view_reduces && params.reduce.value_or(true);
}

}  // namespace divan::index::views
