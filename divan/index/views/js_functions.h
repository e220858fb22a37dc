// The functions of an index in JavaScript: calls them for documents, and records their failures.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "divan/index/views/mapper.h"
#include "divan/index/views/slow_documents.h"

namespace divan::index::views {

/// The `language` of design documents whose functions are JavaScript.
inline constexpr std::string_view kJavaScript = "javascript";

/// Returns true if the functions of a design document are JavaScript.
bool is_javascript(std::string_view body);

/// The origin of the functions of a design document, with the modules of `views.lib`. `database` may be null.
Origin origin_of(const std::string& design_id, std::string_view body, const docs::Database* database);

/// Immutable, hence thread-safe. The pool must outlive it.
class JsFunctions {
 public:
  /// What messages call an index, and a function of it.
  struct Terms {
    std::string_view index = "View";
    std::string_view function = "Map function";
  };
  /// The functions' names and sources.
  using Sources = std::vector<std::pair<std::string, std::string>>;

  /// `signature` is the index's; `slow` may be null.
  JsFunctions(const Origin& origin, const Sources& sources, const std::string& signature, js::Pool& pool,
              std::shared_ptr<SlowDocuments> slow, const Terms& terms);

  /// Receives what a function emitted for a document of the batch.
  using Add =
      std::function<void(std::size_t document, std::size_t function, std::span<const js::Emitted> emitted)>;
  /// Adds the documents of the first texts, at least of one, to `batch`, which is empty, and calls `add` for
  /// each of them and each function. Throws as Index::map().
  void map(const SourceTexts& texts, const js::Limits& limits, DocumentBatch& batch, const Add& add) const;

 private:
  void add_results(const js::MapResult& result, std::size_t in_result, const SourceTexts& texts,
                   std::size_t number, const js::Limits& limits, std::vector<std::size_t>& strikes,
                   DocumentBatch& batch, const Add& add) const;
  Duration invocation(const js::Limits& limits) const;
  void reject_slow(const SourceTexts& texts, const js::Limits& limits) const;

  const js::Owner owner_;
  js::Pool& pool_;
  const std::shared_ptr<SlowDocuments> slow_;  // may be null
  const Terms terms_;
  js::Program program_;
};

}  // namespace divan::index::views
