// Results of functions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "divan/js/protocol.h"

namespace divan::js {

/// A key and a value that a map function emitted: JSON texts, unless a script has taken control of its
/// process.
struct Emitted {
  std::string_view key;
  std::string_view value;
};

/// The pairs that the functions of a program emitted for the documents of a batch, and their failures. Owns
/// the bytes of the returned views. Movable; thread-compatible.
class MapResult {
 public:
  explicit MapResult(std::size_t functions) : functions_(functions) {}

  /// The number of documents processed, from the first of the batch on: at least one unless the batch was
  /// empty.
  std::size_t documents() const { return documents_; }
  std::size_t functions() const { return functions_; }

  /// In the order of their emits; empty if the function failed.
  std::span<const Emitted> emitted(std::size_t document, std::size_t function) const {
    const auto& cell = cells_[document * functions_ + function];
    return {emitted_.data() + cell.first, cell.count};
  }

  /// Null if the function did not fail.
  const Failure* failure(std::size_t document, std::size_t function) const {
    const auto& cell = cells_[document * functions_ + function];
    return cell.failure == kNone ? nullptr : &failures_[cell.failure];
  }

  /// The number of failed calls.
  std::size_t failures() const { return failures_.size(); }

  /// Returns true if one of them timed out.
  bool timed_out() const;

  /// Appends the documents of `more`, which must be of the same functions.
  void append(MapResult more);

  /// Appends a document for which all functions failed.
  void append_failed(const Failure& failure);

 private:
  friend class MapResponseParser;
  static constexpr std::uint32_t kNone = 0xffffffff;

  struct Cell {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t failure = kNone;
  };

  std::size_t functions_;
  std::size_t documents_ = 0;
  std::vector<Cell> cells_;  // by document, then function
  std::vector<Emitted> emitted_;
  std::vector<Failure> failures_;
  std::vector<std::unique_ptr<const std::string>> bytes_;
};

/// The result of one call of a function, or its failure.
using Outcome = std::variant<std::string, Failure>;
/// A reduction's JSON text, or its failure.
using Reduction = Outcome;

}  // namespace divan::js
