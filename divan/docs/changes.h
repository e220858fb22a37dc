// What changed in a database, in the order of the changes: one entry a document, at the place of its last
// change.
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
  std::optional<std::uint32_t> other_leaves;  // besides the winner; rows of older versions do not say
};

/// Receives a change; answers whether to go on.
using ChangeVisitor = std::function<bool(const Change&)>;

/// What visit_changes() and count_changes() read of the next `limit` ones, for Transaction::prefetch().
void prefetch_changes(kv::Prefetch& reads, const Database& database, const kv::Versionstamp& since,
                      std::size_t limit);

/// Visits the changes after `since`. Reads a snapshot.
void visit_changes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                   const ChangeVisitor& visit);

/// Visits the changes before `before` (all, if it is nothing) and after `since`, the last one first. Reads a
/// snapshot.
void visit_changes_backwards(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                             const std::optional<kv::Versionstamp>& before, const ChangeVisitor& visit);

/// How many documents changed after `since`, at most `limit` (it counts row by row).
std::int64_t count_changes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                           std::int64_t limit);

/// The bodies of the winners of changes in their order, "{}" for an empty one. The changes are in the order
/// of their sequences or in the reverse one. Reads neighbouring bodies in one scan, not one by one. Stops
/// after the body that brings them to `max_bytes`.
std::vector<std::string> read_bodies(kv::Transaction& tx, const Database& database,
                                     std::span<const Change> changes, std::size_t max_bytes = SIZE_MAX);

/// A row of the changes: what stands after the section in its key, and its value. Throws an internal error if
/// it is damaged.
Change decode_change(std::string_view key_after_section, std::string_view value);

/// The row of a change; `winner_user_version` is given when the winner was written in this transaction.
void write_change(kv::Transaction& tx, const Database& database, const Change& change,
                  std::optional<std::uint16_t> winner_user_version);

}  // namespace divan::docs
