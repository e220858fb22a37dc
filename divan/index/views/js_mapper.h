// The rows of functions in JavaScript.
#pragma once

#include <functional>
#include <memory>

#include "divan/index/views/mapper.h"
#include "divan/index/views/slow_documents.h"

namespace divan::index::views {

/// The `language` of design documents whose functions are JavaScript.
inline constexpr std::string_view kJavaScript = "javascript";

/// How what functions emit becomes rows: for views, each key and value is a row.
struct EmittedRows {
  // For messages:
  std::string_view index = "View";
  std::string_view function = "Map function";
  /// Adds the rows of what a function emitted for a document of the batch; null for views.
  std::function<void(ViewBatch& batch, std::size_t document, std::size_t function,
                     std::span<const js::Emitted> emitted)>
      add = {};
};

/// Runs the functions of an index in the sandbox. The pool must outlive it.
class JsMapper final : public Mapper {
 public:
  /// `signature` is the index's; `slow` may be null.
  JsMapper(const Origin& origin, const std::map<std::string, View>& views, const std::string& signature,
           js::Pool& pool, std::shared_ptr<SlowDocuments> slow, EmittedRows rows = {});

  std::string_view language() const override { return kJavaScript; }
  void map(const SourceTexts& texts, const js::Limits& limits, ViewBatch& batch) const override;

 private:
  void add_rows(const js::MapResult& result, std::size_t in_result, const SourceTexts& texts,
                std::size_t number, const js::Limits& limits, std::vector<std::size_t>& strikes,
                ViewBatch& batch) const;
  Duration invocation(const js::Limits& limits) const;
  void reject_slow(const SourceTexts& texts, const js::Limits& limits) const;

  const js::Owner owner_;
  js::Pool& pool_;
  const std::shared_ptr<SlowDocuments> slow_;  // may be null
  const EmittedRows rows_;
  js::Program program_;
};

}  // namespace divan::index::views
