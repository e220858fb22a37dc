#include "divan/api/document_filter.h"

#include "divan/api/function_request.h"
#include "divan/api/function_threads.h"
#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/functions/filter_functions.h"
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

class CallingFilter final : public DocumentFilter {
 public:
  explicit CallingFilter(std::unique_ptr<functions::FilterFunction> function)
      : function_(std::move(function)) {}

  const std::string& key() const override { return function_->key(); }
  bool calls_functions() const override { return true; }
  std::vector<bool> select(std::span<const std::string> documents) const override {
    return function_->select(documents, FunctionThreads::limits());
  }

 private:
  const std::unique_ptr<functions::FilterFunction> function_;
};

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
    return std::make_shared<CallingFilter>(
        functions::read_view_filter(context.js_pool, tx, database, call.param("view").value_or("")));
  }
  if (name->starts_with('_')) throw bad_request("unknown builtin filter name");
  return std::make_shared<CallingFilter>(
      functions::read_filter(context.js_pool, tx, database, *name, filter_request(tx, database, call)));
}

}  // namespace divan::api
