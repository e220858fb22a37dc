#include "divan/api/queries.h"

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

using index::views::ViewParams;

// Each query holds its place in a listing while the answer is written.
constexpr std::size_t kMaxQueries = 1000;

// One thread at a time, as every source.
class SeveralPages final : public PageSource {
 public:
  explicit SeveralPages(std::vector<std::unique_ptr<PageSource>> sources) : sources_(std::move(sources)) {}

  bool next(std::string& out) override {
    if (!std::exchange(begun_, true)) out += "{\"results\":[";
    if (current_ < sources_.size()) {
      if (sources_[current_]->next(out)) return true;
      out.pop_back();  // the line end
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

bool asks_several(const Call& call, std::size_t depth) {
  return call.path().size() == depth + 1 && call.path().back() == "queries";
}

std::vector<ViewParams> parse_queries(Call& call) {
  call.allow("POST");
  ViewParams of_all;
  for (const auto& [name, value] : call.params()) {
    if (name != "keys" || json::compact(value).starts_with('[')) index::views::set_param(of_all, name, value);
  }
  // What CouchDB takes from each query alone.
  of_all.keys.reset();
  of_all.group.reset();
  of_all.group_level.reset();
  const std::string body = call.json_body();
  const auto queries = json::member(body, "queries");
  if (!queries) throw bad_request("POST body must include `queries` parameter.");
  std::vector<ViewParams> parsed;
  const bool is_array = json::for_each_element(*queries, [&](std::string_view query) {
    parsed.push_back(of_all);
    index::views::set_params_from_body(parsed.back(), query);
    parsed.back() = one_key_as_range(std::move(parsed.back()));
    return parsed.size() <= kMaxQueries;
  });
  if (!is_array) throw bad_request("`queries` member must be an array.");
  if (parsed.size() > kMaxQueries)
    throw bad_request(fmt::format("There are more than {} queries.", kMaxQueries));
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
  // What both say is as the URL says, as in CouchDB.
  for (const auto& [name, value] : call.params()) index::views::set_param(params, name, value);
  return params;
}

std::string id_of_key(const std::string& key) {
  auto id = json::string_value(key).value_or("");
  // Longer ones exist nowhere, and make keys that the store refuses.
  if (id.size() > docs::kMaxDocumentIdBytes) id.clear();
  return id;
}

docs::DocumentRange document_range(const ViewParams& params) {
  const auto bound = [](const std::optional<std::string>& key, const std::optional<std::string>& id) {
    auto wanted = key ? json::string_value(*key).value_or("") : id;
    // Behind the same ids as the whole, since none is as long as this.
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

std::unique_ptr<PageSource> several_pages(std::vector<std::unique_ptr<PageSource>> sources) {
  return std::make_unique<SeveralPages>(std::move(sources));
}

}  // namespace divan::api
