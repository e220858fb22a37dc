// What computes the rows of the views of a design document: JavaScript functions (js_mapper.h), or fields
// (field_mapper.h).
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/document_batch.h"
#include "divan/index/views/view_set.h"

namespace divan::index::views {

class ViewBatch;

/// The documents of a batch, and the texts of those that are to be mapped. Not thread-safe.
class SourceTexts {
 public:
  /// Deleted documents are not mapped, and design documents only with `include_design`. `documents` must
  /// outlive this object.
  SourceTexts(std::span<const SourceDocument> documents, const ViewOptions& options);

  std::size_t size() const { return texts_.size(); }
  std::span<const std::string_view> from(std::size_t first) const { return std::span(texts_).subspan(first); }
  std::string_view text(std::size_t number) const { return texts_[number]; }
  /// The index of text `number` among all documents of the batch.
  std::size_t index(std::size_t number) const { return indices_[number]; }
  const SourceDocument& document(std::size_t number) const { return documents_[indices_[number]]; }
  /// All documents of the batch.
  std::span<const SourceDocument> documents() const { return documents_; }

  /// Adds the documents before text `number` to `batch`, except those that were added before; all, if there
  /// is no such text.
  void add_documents_before(std::size_t number, DocumentBatch& batch) const;

 private:
  const std::span<const SourceDocument> documents_;
  std::vector<std::string_view> texts_;
  std::vector<std::size_t> indices_;
  std::deque<std::string> own_texts_;  // with `_local_seq`
};

/// Immutable, hence thread-safe.
class Mapper {
 public:
  virtual ~Mapper() = default;

  /// The `language` of design documents with such views.
  virtual std::string_view language() const = 0;

  /// Adds the documents of the first texts, at least of one, with the rows of all views to `batch`, which is
  /// empty. Throws as Index::map().
  virtual void map(const SourceTexts& texts, const js::Limits& limits, ViewBatch& batch) const = 0;
};

}  // namespace divan::index::views
