#include "divan/functions/filter_functions.h"

#include <fmt/core.h>

#include "divan/base/digest.h"
#include "divan/docs/document.h"
#include "divan/docs/reader.h"
#include "divan/functions/design_function.h"
#include "divan/http/url.h"

namespace divan::functions {
namespace {

class ProgramFilter : public FilterFunction {
 public:
  ProgramFilter(js::Pool& pool, js::Program program, std::string_view more_key)
      : pool_(pool), program_(std::move(program)), key_(sha256(program_.id + std::string(more_key))) {}

  const std::string& key() const final { return key_; }

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

class Filter final : public ProgramFilter {
 public:
  Filter(js::Pool& pool, js::Program program, const std::string& request)
      : ProgramFilter(pool, std::move(program), request), request_("[" + request + "]") {}

  std::vector<bool> select(std::span<const std::string> documents, const js::Limits& limits) const override {
    std::vector<std::string> arrays;
    for (const auto& document : documents) arrays.push_back("[" + document + "]");
    std::vector<js::Arguments> calls;
    for (const auto& array : arrays) calls.push_back({array, request_});
    std::vector<bool> selected;
    for (const auto& outcome : pool().apply(program(), js::ResultKind::truth, calls, limits)) {
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

class ViewFilter final : public ProgramFilter {
 public:
  using ProgramFilter::ProgramFilter;

  std::vector<bool> select(std::span<const std::string> documents, const js::Limits& limits) const override {
    const std::vector<std::string_view> views(documents.begin(), documents.end());
    const auto result = pool().map(program(), views, limits);
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

// Splits "design/name". Throws bad_request if it has another form.
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
  return design_function(owner_of(database, id), found.body, path);
}

}  // namespace

std::unique_ptr<FilterFunction> read_filter(js::Pool& pool, kv::Transaction& tx,
                                            const docs::Database& database, std::string_view name,
                                            const std::string& request) {
  const auto [design, filter] = split_name("filter", name);
  const std::string path[] = {"filters", filter};
  return std::make_unique<Filter>(pool, read_function(tx, database, design, path), request);
}

std::unique_ptr<FilterFunction> read_view_filter(js::Pool& pool, kv::Transaction& tx,
                                                 const docs::Database& database, std::string_view name) {
  const auto [design, view] = split_name("view", name);
  const std::string path[] = {"views", view, "map"};
  return std::make_unique<ViewFilter>(pool, read_function(tx, database, design, path), "");
}

}  // namespace divan::functions
