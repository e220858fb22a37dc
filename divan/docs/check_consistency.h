// The bodies and the row in the changes that a document's leaves require.
#pragma once

#include "divan/docs/changes.h"
#include "divan/docs/keys.h"
#include "divan/kv/check.h"

namespace divan::docs {

/// The leaves of a document, added in the order of their keys: the winner is the last one.
struct DocumentRows {
  std::string id;
  Leaf last{};
  kv::Versionstamp sequence{};  // the greatest of the leaves' sequences
  std::uint32_t leaves = 0;

  void add(Leaf leaf) {
    ++leaves;
    sequence = std::max(sequence, leaf.sequence);
    last = std::move(leaf);
  }
  /// The row that the document must have in the changes.
  Change change() const;
};

/// Returns true if `text` is a complete body as it is stored: a JSON object without white space.
bool is_body(std::optional<std::string_view> text);

std::string body_digest(std::string_view stamp_bytes, std::uint64_t chunks, std::uint64_t bytes);
/// A digest of everything except the number of leaves, which rows of older versions lack.
std::string change_digest(const Change& change);
/// A digest that includes the number of leaves; nullopt if there is one leaf, or if the row lacks the number.
std::optional<std::string> conflict_digest(const Change& change);

/// Reads a database whose leaves are inconsistent with its `bodies` or its rows in the `changes`, and adds
/// findings for about twenty rows at most.
void report_inconsistencies(kv::RowSource& rows, kv::Findings& findings, const std::string& database,
                            std::int64_t number, std::uint64_t bodies, std::uint64_t changes);

}  // namespace divan::docs
