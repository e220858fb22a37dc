// The rows of functions in JavaScript.
#pragma once

#include <functional>
#include <memory>

#include "divan/index/views/js_functions.h"

namespace divan::index::views {

/// How what functions emit becomes rows: for views, each key and value is a row.
struct EmittedRows {
  JsFunctions::Terms terms = {};
  /// Adds the rows of what a function emitted for a document of the batch, of which this is the change; null
  /// for views.
  std::function<void(ViewBatch& batch, std::size_t document, const docs::Change& change, std::size_t function,
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
  const EmittedRows rows_;
  const JsFunctions functions_;
};

}  // namespace divan::index::views
