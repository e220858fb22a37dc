#include "divan/api/document_filter.h"

#include <fmt/core.h>

#include "divan/api/function_request.h"
#include "divan/api/function_threads.h"
#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/functions/design_function.h"
#include "divan/http/url.h"
#include "divan/selector/selector.h"

namespace divan::api {
namespace {

class SelectorFilter final : public DocumentFilter {
 public:
  explicit SelectorFilter(std::string_view json) : key_(sha256(json)), selector_(parse(json)) {}

  const std::string& key() const override { return key_; }
  bool calls_functions() const override { return false; }

  std::vector<bool> select(std::span<const std::string> documents) const override {
    std::vector<bool> selected;
    try {
      for (const auto& document : documents) selected.push_back(selector_.matches(document));
    } catch (const Error&) {
      // Those before it are shown first.
      if (selected.empty()) throw;
    }
    return selected;
  }

 private:
  static selector::Selector parse(std::string_view json) {
    try {
      return selector::Selector::parse(json);
    } catch (const Error& error) { throw bad_request(error.reason()); }  // as in CouchDB
  }

  const std::string key_;
  const selector::Selector selector_;
};

class FunctionFilter : public DocumentFilter {
 public:
  FunctionFilter(js::Pool& pool, js::Program program, std::string_view more_key)
      : pool_(pool), program_(std::move(program)), key_(sha256(program_.id + std::string(more_key))) {}

  const std::string& key() const override { return key_; }
  bool calls_functions() const override { return true; }

 protected:
  js::Pool& pool() const { return pool_; }
  const js::Program& program() const { return program_; }

  Error failed(const js::Failure& failure) const {
    const auto& function = program_.functions.front();
    return {500, "filter_function_failed",
            fmt::format("The function `{}` of `{}` failed: {}", function.name, function.owner.design_document,
                        failure.message)};
  }

 private:
  js::Pool& pool_;
  const js::Program program_;
  const std::string key_;
};

// filter=design/function
class CustomFilter final : public FunctionFilter {
 public:
  CustomFilter(js::Pool& pool, js::Program program, const std::string& request)
      : FunctionFilter(pool, std::move(program), request), request_("[" + request + "]") {}

  std::vector<bool> select(std::span<const std::string> documents) const override {
    std::vector<std::string> arrays;
    for (const auto& document : documents) arrays.push_back("[" + document + "]");
    std::vector<js::Arguments> calls;
    for (const auto& array : arrays) calls.push_back({array, request_});
    std::vector<bool> selected;
    for (const auto& outcome :
         pool().apply(program(), js::ResultKind::truth, calls, FunctionThreads::limits())) {
      if (const auto* failure = std::get_if<js::Failure>(&outcome)) {
        if (selected.empty()) throw failed(*failure);
        break;
      }
      selected.push_back(std::get<std::string>(outcome) == "true");
    }
    return selected;
  }

 private:
  const std::string request_;
};

// filter=_view: the documents for which the map function emits anything.
class ViewFilter final : public FunctionFilter {
 public:
  using FunctionFilter::FunctionFilter;

  std::vector<bool> select(std::span<const std::string> documents) const override {
    const std::vector<std::string_view> views(documents.begin(), documents.end());
    const auto result = pool().map(program(), views, FunctionThreads::limits());
    std::vector<bool> selected;
    for (std::size_t i = 0; i < result.documents(); ++i) {
      if (const auto* failure = result.failure(i, 0)) {
        if (i == 0) throw failed(*failure);
        break;
      }
      selected.push_back(!result.emitted(i, 0).empty());
    }
    return selected;
  }
};

// Splits "design/name", whose parts may be percent-encoded. Throws bad_request if it has another form.
std::pair<std::string, std::string> split_name(std::string_view parameter, std::string_view name) {
  const auto slash = name.find('/');
  const bool is_pair = slash != std::string_view::npos && slash > 0 && slash + 1 < name.size() &&
                       name.find('/', slash + 1) == std::string_view::npos;
  if (!is_pair) {
    throw bad_request(fmt::format("`{}` must be of the form `designname/{}name`", parameter, parameter));
  }
  return {http::percent_decode(name.substr(0, slash)), http::percent_decode(name.substr(slash + 1))};
}

js::Program read_function(kv::Transaction& tx, const docs::Database& database, const std::string& design,
                          std::span<const std::string> path) {
  const std::string id = std::string(docs::kDesignPrefix) + design;
  const auto found = docs::find_document(tx, database, id, {});
  return functions::design_function(functions::owner_of(database, id), found.body, path);
}

DocumentFilterPtr selector_filter(Call& call) {
  if (call.method() != "POST") throw bad_request("Selector must be specified in POST payload");
  const std::string body = call.json_body();
  if (json::member(body, "fields")) throw Error(501, "not_implemented", "`fields` is not supported yet.");
  return std::make_shared<SelectorFilter>(json::member(body, "selector").value_or("null"));
}

}  // namespace

DocumentFilterPtr document_filter(const Context& context, kv::Transaction& tx, const docs::Database& database,
                                  Call& call) {
  const auto name = call.param("filter");
  if (!name || name->empty() || *name == "_doc_ids" || *name == "_design") return nullptr;
  if (*name == "_selector") return selector_filter(call);
  if (*name == "_view") {
    const auto [design, view] = split_name("view", call.param("view").value_or(""));
    const std::string path[] = {"views", view, "map"};
    return std::make_shared<ViewFilter>(context.js_pool, read_function(tx, database, design, path), "");
  }
  if (name->starts_with('_')) throw bad_request("unknown builtin filter name");
  const auto [design, filter] = split_name("filter", *name);
  const std::string path[] = {"filters", filter};
  return std::make_shared<CustomFilter>(context.js_pool, read_function(tx, database, design, path),
                                        filter_request(tx, database, call));
}

}  // namespace divan::api
