// The rows of a listing, which is a JSON text, for a list function.
#pragma once

#include <memory>
#include <string>

#include "divan/api/page_stream.h"

namespace divan::api {

/// Takes a listing apart: {"total_rows": 2, "offset": 0, "rows": [...]}, with each row on a line of its own,
/// is a head and pages of rows. Not thread-safe.
class ListRows {
 public:
  /// `checkpoint` is called between the pieces of the listing.
  ListRows(std::unique_ptr<PageSource> listing, docs::Checkpoint checkpoint)
      : listing_(std::move(listing)), checkpoint_(std::move(checkpoint)) {}

  /// Reads the next page: a JSON array, which is empty only if it is the last one.
  std::string next();
  /// Whether next() has returned the last page.
  bool is_last() const { return is_last_; }
  /// After next(): the members of the listing besides `rows`, a JSON object.
  const std::string& head() const { return head_; }

 private:
  const std::unique_ptr<PageSource> listing_;
  const docs::Checkpoint checkpoint_;
  std::string head_;
  bool is_last_ = false;
};

}  // namespace divan::api
