// What functions have answered.
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

/// A key and its value as a map function emitted them: JSON texts, as far as the process can be trusted. (A
/// script cannot make it write anything else; one that has taken over its process can.)
struct Emitted {
  std::string_view key;
  std::string_view value;
};

/// What the functions of a program emitted for the documents of a batch, and where they failed. Owns the
/// bytes that it shows. Movable; thread-compatible.
class MapResult {
 public:
  explicit MapResult(std::size_t functions) : functions_(functions) {}

  /// How many documents were done, from the batch's first one on: at least one, if there was one.
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

  /// Calls of functions that failed.
  std::size_t failures() const { return failures_.size(); }

  /// Returns true if one of them ran out of time.
  bool timed_out() const;

  /// Puts the documents of `more`, of the same functions, behind these.
  void append(MapResult more);

  /// One more document, for which all functions failed.
  void append_failed(const Failure& failure);

 private:
  friend class MapAnswerParser;
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

/// A reduction's JSON text, or why there is none.
using Reduction = std::variant<std::string, Failure>;

}  // namespace divan::js
