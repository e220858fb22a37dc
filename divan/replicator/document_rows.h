// The rows that say which replications the documents of replicator databases have asked for. They are not
// part of these databases, so that they outlive a deletion, and that a restored database has none
// (docs/keyspace.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "divan/kv/check.h"
#include "divan/kv/store.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::replicator::rows {

/// The prefix of changed(), for all names.
std::string all_changed();
/// Exists if the database of this name may have changes that were not processed. The value is empty.
std::string changed(std::string_view database);
/// The name in a key of changed(); nullopt if it is damaged.
std::optional<std::string> changed_name(std::string_view key);
/// A counter that grows whenever a row of changed() is written: for watches.
std::string signal();

/// The changes of a database that were processed.
struct Processed {
  std::int64_t number = 0;  ///< the database's
  kv::Versionstamp position{};
};
std::string processed(std::string_view database);
std::string encode(const Processed& processed);
/// Throws an internal error if the value is damaged.
Processed decode_processed(std::string_view value);

/// The prefix of requested(), for all documents of a database.
std::string all_requested(std::string_view database);
/// The id of the job that a document has asked for.
std::string requested(std::string_view database, std::string_view document);

/// Checks that all rows can be read. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// The findings must outlive the check.
  explicit Check(kv::Findings& findings) : findings_(findings) {}
  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource&) override {}

 private:
  kv::Findings& findings_;
};

}  // namespace divan::replicator::rows
