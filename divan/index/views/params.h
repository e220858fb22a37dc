// What a client asks of a view (https://docs.couchdb.org/en/stable/api/ddoc/views.html).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/views/collation.h"

namespace divan::index::views {

enum class Update {
  wait,   // update=true: rows as of the request at least
  never,  // update=false: what there is
  lazy,   // what there is, and an update is asked for
};

struct ViewParams {
  // Keys are JSON in json::compact()'s form.
  std::optional<std::vector<std::string>> keys;  // a single one is start_key and end_key, too
  std::optional<std::string> start_key;
  std::optional<std::string> end_key;
  std::optional<std::string> start_key_doc_id;
  std::optional<std::string> end_key_doc_id;
  bool inclusive_end = true;
  bool descending = false;
  std::uint64_t skip = 0;
  std::optional<std::uint64_t> limit;
  std::optional<bool> reduce;
  std::optional<bool> group;                 // by the whole key, unless a level is given
  std::optional<std::uint64_t> group_level;  // by the first elements of array keys; 0: all in one
  bool include_docs = false;
  std::optional<bool> conflicts;
  bool update_seq = false;
  bool sorted =
      true;  // false: the caller wants no `total_rows` and `offset`; rows come in order all the same
  Update update = Update::wait;
};

/// Sets a parameter by CouchDB's name for it; `text` is as in a URL, decoded. Unknown names are ignored.
/// Throws query_parse_error (400).
void set_param(ViewParams& params, std::string_view name, std::string_view text);

/// Sets the parameters that a request's body, a JSON object, has. Throws query_parse_error or bad_request.
void set_params_from_body(ViewParams& params, std::string_view json);

/// What a view makes of a single one of `keys`: the range that it is.
ViewParams one_key_as_range(ViewParams params);

/// Throws query_parse_error if there are `keys` beside a range of others; none at all are beside any range.
void check_keys(const ViewParams& params);

/// Throws query_parse_error if the parameters contradict each other, or the view: one with a reduce function
/// or without, whose keys have this order.
void check_params(const ViewParams& params, bool view_reduces, Collation collation);

/// The same for a listing of documents or databases, which has a view's parameters, and no reduce function.
void check_listing_params(const ViewParams& params);

/// By how many elements of array keys rows are grouped: 0, not at all; UINT64_MAX, by the whole key.
inline std::uint64_t group_level(const ViewParams& params) {
  return params.group_level.value_or(params.group.value_or(false) ? UINT64_MAX : 0);
}

/// Whether the view's rows are to be reduced.
inline bool reduces(const ViewParams& params, bool view_reduces) {
  return view_reduces && params.reduce.value_or(true);
}

}  // namespace divan::index::views
