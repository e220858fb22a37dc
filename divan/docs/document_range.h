// A range of documents by id.
#pragma once

#include <optional>
#include <string>

namespace divan::docs {

/// A range of documents.
struct DocumentRange {
  std::optional<std::string> start_id;
  std::optional<std::string> end_id;
  bool inclusive_end = true;
  bool descending = false;
};

}  // namespace divan::docs
