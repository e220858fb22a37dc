// The changes of a database in their order: one entry for each document, at the sequence of its last change.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "divan/docs/catalog.h"

namespace divan::docs {

/// A document's last change.
struct Change {
  kv::Versionstamp sequence;
  std::string id;
  Revision winner;
  bool deleted = false;
  kv::Versionstamp body_sequence;  // of the winner's body
  std::uint32_t chunks = 0;
  std::optional<std::uint32_t> other_leaves;  // besides the winner; nullopt in rows of older versions
};

/// Receives a change; returns true to continue.
using ChangeVisitor = std::function<bool(const Change&)>;

/// Prefetches what visit_changes() and count_changes() read of the next `limit` changes.
void prefetch_changes(kv::Prefetch& reads, const Database& database, const kv::Versionstamp& since,
                      std::size_t limit);

/// Visits the changes after `since`. Reads a snapshot.
void visit_changes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                   const ChangeVisitor& visit);

/// Visits the changes before `before` (all, if it is nullopt) and after `since` in descending order. Reads a
/// snapshot.
void visit_changes_backwards(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                             const std::optional<kv::Versionstamp>& before, const ChangeVisitor& visit);

/// Returns the number of documents that changed after `since`, at most `limit` (it counts row by row).
std::int64_t count_changes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                           std::int64_t limit);

/// Reads the bodies of the changes' winners, "{}" for an empty one. The changes must be in ascending or
/// descending order of their sequences. Reads adjacent bodies in one scan, not one by one. Stops after the
/// body with which the total reaches `max_bytes`.
std::vector<std::string> read_bodies(kv::Transaction& tx, const Database& database,
                                     std::span<const Change> changes, std::size_t max_bytes = SIZE_MAX);

/// Decodes a row of the changes: the part of its key after the section, and its value. Throws an internal
/// error if it is damaged.
Change decode_change(std::string_view key_after_section, std::string_view value);

/// Writes the row of a change; `winner_user_version` is set if the winner was written in this transaction.
void write_change(kv::Transaction& tx, const Database& database, const Change& change,
                  std::optional<std::uint16_t> winner_user_version);

}  // namespace divan::docs
