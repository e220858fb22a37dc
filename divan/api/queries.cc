#include "divan/api/queries.h"

#include <fmt/core.h>

#include <utility>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

using index::views::ViewParams;

// Each query holds its position in a listing while the response is written.
constexpr std::size_t kMaxQueries = 1000;

// Not thread-safe, as every source.
class MultiQueryPages final : public PageSource {
 public:
  explicit MultiQueryPages(std::vector<std::unique_ptr<PageSource>> sources) : sources_(std::move(sources)) {}

  bool next(std::string& out) override {
    if (!std::exchange(begun_, true)) out += "{\"results\":[";
    if (current_ < sources_.size()) {
      if (sources_[current_]->next(out)) return true;
      out.pop_back();  // the newline
      sources_[current_].reset();
      if (++current_ < sources_.size()) {
        out += ",\n";
        return true;
      }
    }
    out += "]}\n";
    return false;
  }

 private:
  std::vector<std::unique_ptr<PageSource>> sources_;
  std::size_t current_ = 0;
  bool begun_ = false;
};

}  // namespace

bool is_multi_query(const Call& call, std::size_t depth) {
  return call.path().size() == depth + 1 && call.path().back() == "queries";
}

std::vector<ViewParams> parse_queries(Call& call) {
  ViewParams common;
  for (const auto& [name, value] : call.params()) {
    if (name != "keys" || json::compact(value).starts_with('[')) index::views::set_param(common, name, value);
  }
  // Parameters that CouchDB takes from each query only.
  common.keys.reset();
  common.group.reset();
  common.group_level.reset();
  const std::string body = call.json_body();
  const auto queries = json::member(body, "queries");
  if (!queries) throw bad_request("POST body must include `queries` parameter.");
  std::vector<ViewParams> parsed;
  const bool is_array = json::for_each_element(*queries, [&](std::string_view query) {
    parsed.push_back(common);
    index::views::set_params_from_body(parsed.back(), query);
    parsed.back() = one_key_as_range(std::move(parsed.back()));
    return parsed.size() <= kMaxQueries;
  });
  if (!is_array) throw bad_request("`queries` member must be an array.");
  if (parsed.size() > kMaxQueries)
    throw bad_request(fmt::format("Too many queries; at most {} are allowed.", kMaxQueries));
  return parsed;
}

ViewParams parse_query_params(Call& call) {
  ViewParams params;
  if (call.method() == "POST" && call.has_body()) {
    const std::string body = call.json_body();
    if (json::member(body, "queries"))
      throw bad_request("The `queries` parameter is no longer supported at this endpoint");
    const auto keys = json::member(body, "keys");
    if (keys && !keys->starts_with('[')) throw bad_request("`keys` member must be an array.");
    index::views::set_params_from_body(params, body);
  }
  // The URL takes precedence, as in CouchDB.
  for (const auto& [name, value] : call.params()) index::views::set_param(params, name, value);
  return params;
}

std::string id_of_key(const std::string& key) {
  auto id = json::string_value(key).value_or("");
  // Longer ids do not exist, and would make keys that the store rejects.
  if (id.size() > docs::kMaxDocumentIdBytes) id.clear();
  return id;
}

docs::DocumentRange document_range(const ViewParams& params) {
  const auto bound = [](const std::optional<std::string>& key, const std::optional<std::string>& id) {
    auto wanted = key ? json::string_value(*key).value_or("") : id;
    // Equivalent to the whole bound, since all ids are shorter.
    if (wanted && wanted->size() > docs::kMaxDocumentIdBytes) wanted->resize(docs::kMaxDocumentIdBytes + 1);
    return wanted;
  };
  docs::DocumentRange range;
  range.descending = params.descending;
  range.inclusive_end = params.inclusive_end;
  range.start_id = bound(params.start_key, params.start_key_doc_id);
  range.end_id = bound(params.end_key, params.end_key_doc_id);
  return range;
}

std::unique_ptr<PageSource> multi_query_pages(std::vector<std::unique_ptr<PageSource>> sources) {
  return std::make_unique<MultiQueryPages>(std::move(sources));
}

}  // namespace divan::api
