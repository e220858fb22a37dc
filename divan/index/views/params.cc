#include "divan/index/views/params.h"

#include <fmt/core.h>

#include <charconv>

#include <boost/algorithm/string/predicate.hpp>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/partition.h"

namespace divan::index::views {
namespace {

Error malformed(std::string reason) { return {400, "query_parse_error", std::move(reason)}; }

bool parse_bool(std::string_view text) {
  if (boost::algorithm::iequals(text, "true")) return true;
  if (boost::algorithm::iequals(text, "false")) return false;
  throw malformed(fmt::format("Invalid boolean parameter: \"{}\"", text));
}

std::uint64_t parse_count(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw malformed(fmt::format("Invalid value for integer: \"{}\"", text));
  }
  if (value < 0) throw malformed(fmt::format("Invalid value for positive integer: \"{}\"", text));
  return static_cast<std::uint64_t>(value);
}

std::string parse_key(std::string_view text) {
  try {
    return json::compact(text);
  } catch (const Error&) { throw bad_request("invalid UTF-8 JSON"); }
}

std::vector<std::string> parse_keys(std::string_view text) {
  std::vector<std::string> keys;
  const std::string compact = parse_key(text);
  const bool is_array = json::for_each_element(compact, [&](std::string_view key) {
    keys.emplace_back(key);
    return true;
  });
  if (!is_array) throw malformed("`keys` must be an array of strings.");
  return keys;
}

Update parse_update(std::string_view text) {
  if (text == "true") return Update::wait;
  if (text == "false") return Update::never;
  if (text == "lazy") return Update::lazy;
  throw malformed("Invalid value for `update`.");
}

// Has no effect: CouchDB chooses among the copies of a shard, and an index of Divan has one copy.
void check_stable(std::string_view text) {
  if (text != "true" && text != "false") throw malformed("Invalid value for `stable`.");
}

Update parse_stale(std::string_view text) {
  if (text == "ok") return Update::never;
  if (text == "update_after") return Update::lazy;
  throw malformed("Invalid value for `stale`.");
}

void check_reducing(const ViewParams& params, bool view_reduces) {
  if (params.group == false && group_level(params) > 0)
    throw malformed("Can't specify group=false and group_level>0 at the same time");
  if (params.reduce.value_or(false) && !view_reduces)
    throw malformed("Reduce is invalid for map-only views.");
}

void check_grouping(const ViewParams& params, bool view_reduces) {
  if (group_level(params) > 0 && !reduces(params, view_reduces))
    throw malformed("Invalid use of grouping on a map view.");
}

}  // namespace

void set_param(ViewParams& params, std::string_view name, std::string_view text) {
  if (name == "key") {
    params.start_key = params.end_key = parse_key(text);
  } else if (name == "keys") {
    auto keys = parse_keys(text);
    if (keys.size() == 1) params.start_key = params.end_key = keys.front();
    if (keys.size() != 1 || !params.keys) params.keys = std::move(keys);
  } else if (name == "startkey" || name == "start_key") {
    params.start_key = parse_key(text);
  } else if (name == "endkey" || name == "end_key") {
    params.end_key = parse_key(text);
  } else if (name == "startkey_docid" || name == "start_key_doc_id") {
    params.start_key_doc_id = text;
  } else if (name == "endkey_docid" || name == "end_key_doc_id") {
    params.end_key_doc_id = text;
  } else if (name == "inclusive_end") {
    params.inclusive_end = parse_bool(text);
  } else if (name == "descending") {
    params.descending = parse_bool(text);
  } else if (name == "skip") {
    params.skip = parse_count(text);
  } else if (name == "limit") {
    params.limit = parse_count(text);
  } else if (name == "reduce") {
    params.reduce = parse_bool(text);
  } else if (name == "group") {
    params.group = parse_bool(text);
  } else if (name == "group_level") {
    params.group_level = parse_count(text);
  } else if (name == "include_docs") {
    params.include_docs = parse_bool(text);
  } else if (name == "conflicts") {
    params.conflicts = parse_bool(text);
  } else if (name == "update_seq") {
    params.update_seq = parse_bool(text);
  } else if (name == "sorted") {
    params.sorted = parse_bool(text);
  } else if (name == "update") {
    params.update = parse_update(text);
  } else if (name == "stale") {
    params.update = parse_stale(text);
  } else if (name == "stable") {
    check_stable(text);
  } else if (name == "attachments") {
    params.attachments = parse_bool(text);
  } else if (name == "att_encoding_info") {
    params.att_encoding_info = parse_bool(text);
  } else if (name == "partition") {
    if (text.empty()) throw malformed("Invalid value for `partition`.");
    docs::check_partition(text);
    params.partition = text;
  }
}

void set_params_from_body(ViewParams& params, std::string_view text) {
  const std::string compact = json::compact(text);
  const bool is_object =
      json::for_each_member(compact, [&](std::string_view raw_name, std::string_view value) {
        const std::string name = json::unescape(raw_name);
        const bool is_key = name == "key" || name == "keys" || name == "startkey" || name == "start_key" ||
                            name == "endkey" || name == "end_key";
        const auto string = is_key ? std::nullopt : json::string_value(value);
        set_param(params, name, string ? std::string_view(*string) : value);
        return true;
      });
  if (!is_object) throw bad_request("Request body must be a JSON object");
}

ViewParams one_key_as_range(ViewParams params) {
  if (params.keys && params.keys->size() == 1) params.keys.reset();
  return params;
}

void check_keys(const ViewParams& params) {
  if (!params.keys || params.keys->empty()) return;
  if (params.keys->size() == 1 && params.start_key == params.keys->front() &&
      params.end_key == params.start_key)
    return;
  if (params.start_key || params.end_key)
    throw malformed("`keys` is incompatible with `key`, `start_key` and `end_key`");
}

Error no_partitions() { return malformed("`partition` parameter is not supported on this db"); }

void check_listing_params(const ViewParams& params, bool may_be_partition) {
  if (params.partition && !may_be_partition) throw no_partitions();
  check_reducing(params, false);
  check_keys(params);
  check_grouping(params, false);
}

void check_params(const ViewParams& params, bool view_reduces, Collation collation, bool is_partitioned) {
  if (is_partitioned && !params.partition)
    throw malformed("`partition` parameter is mandatory for queries to this view.");
  if (!is_partitioned && params.partition)
    throw malformed("`partition` parameter is not supported in this design doc");
  const bool several_keys = params.keys && params.keys->size() != 1;
  check_reducing(params, view_reduces);
  if (several_keys && reduces(params, view_reduces) && group_level(params) != UINT64_MAX)
    throw malformed("Multi-key fetches for reduce views must use `group=true`");
  if (several_keys) check_keys(params);
  check_grouping(params, view_reduces);
  if (params.include_docs && reduces(params, view_reduces))
    throw malformed("`include_docs` is invalid for reduce");
  if (params.conflicts && reduces(params, view_reduces))
    throw malformed("`conflicts` is invalid for reduce views.");
  if (params.start_key && params.end_key) {
    const std::string start = collation::encode_key(*params.start_key, collation);
    const std::string end = collation::encode_key(*params.end_key, collation);
    if (params.descending ? start < end : end < start) {
      throw malformed(
          "No rows can match your key range, reverse your start_key and end_key or set descending=" +
          std::string(params.descending ? "false" : "true"));
    }
  }
}

}  // namespace divan::index::views
