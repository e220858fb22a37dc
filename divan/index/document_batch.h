// A batch of documents while it is mapped.
#pragma once

#include <string>
#include <string_view>

#include "divan/index/index.h"

namespace divan::index {

/// Receives the documents of a batch one after the other, and then what functions make of them. Not
/// thread-safe.
class DocumentBatch : public MappedBatch {
 public:
  virtual void add_document(std::string id) = 0;
  /// Records that rows of the document with index `document` are missing; the index keeps the first reason
  /// (left_out.h).
  virtual void add_failure(std::size_t document, std::string_view reason) = 0;
  /// Approximate size of the rows so far.
  virtual std::size_t bytes() const = 0;
};

}  // namespace divan::index
