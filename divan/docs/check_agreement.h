// What a document's leaves say that there must be elsewhere: bodies, and a row in the changes.
#pragma once

#include "divan/docs/changes.h"
#include "divan/docs/keys.h"
#include "divan/kv/check.h"

namespace divan::docs {

/// The leaves of a document, as they go by in the order of their keys: the winner comes last.
struct DocumentRows {
  std::string id;
  Leaf last{};
  kv::Versionstamp sequence{};  // the latest of them
  std::uint32_t leaves = 0;

  void add(Leaf leaf) {
    ++leaves;
    sequence = std::max(sequence, leaf.sequence);
    last = std::move(leaf);
  }
  /// The row that the document has in the changes.
  Change change() const;
};

/// Whether it is all of a body, as it is kept: a JSON object without white space.
bool is_body(std::optional<std::string_view> text);

std::string body_digest(std::string_view stamp_bytes, std::uint64_t chunks, std::uint64_t bytes);
/// A digest of everything but the number of leaves, which rows of older versions lack.
std::string change_digest(const Change& change);
/// A digest that includes the number of leaves; nullopt if there is one leaf, or if the row lacks the number.
std::optional<std::string> conflict_digest(const Change& change);

/// Reads a database whose leaves do not agree with its `bodies` and rows in the `changes`, and names what is
/// wrong, up to some twenty rows.
void explain_disagreement(kv::RowSource& rows, kv::Findings& findings, const std::string& database,
                          std::int64_t number, std::uint64_t bodies, std::uint64_t changes);

}  // namespace divan::docs
