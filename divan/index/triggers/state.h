// What the store has of a trigger, beside the state that all indexes have: docs/keyspace.md.
//
// A trigger is an index whose signature is that of its name: a changed definition goes on where the old one
// was. Its state is written by the transaction that changes its design document, so that no change of a
// document between that and the first run is missed, and none after its removal leads to a job.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/index.h"
#include "divan/index/triggers/definition.h"

namespace divan::index::triggers {

/// The parts of the index (IndexKeys::part()). Other kinds of index do not have them.
enum class Part : int { seen = 20, record = 21, jobs = 22, rate = 23, last_error = 24 };

/// The signature of a trigger, kSignatureBytes.
std::string trigger_signature(std::string_view design_id, std::string_view name);

/// The record of a trigger's definition. A value type.
struct TriggerRecord {
  std::string digest;
  bool from_start = false;
  bool tracks_documents = false;
  /// If it tracks documents: those that have changed later have a row in the index. Zero: all have.
  kv::Versionstamp tracked_since;
};

/// Returns nullopt if the trigger has no state. Throws an internal error if the record is damaged.
std::optional<TriggerRecord> read_record(kv::Transaction& tx, const IndexKeys& keys,
                                         kv::Isolation isolation = kv::Isolation::serializable);

/// Makes the state that of this definition. A trigger that has no state begins with the first change of the
/// database, or with those after `now`, which may be the sequence of a write of this transaction.
void write_state(kv::Transaction& tx, const IndexKeys& keys, const Definition& definition,
                 const kv::Versionstamp& now);

/// A hook of the catalog: writes the states of the new triggers of a design document, changes those of
/// changed ones, and removes the others. If the triggers are malformed, it changes nothing: those from before
/// continue when they are repaired.
void update_triggers(kv::Transaction& tx, const docs::Database& database, const std::string& design_id,
                     std::string_view body, const kv::Versionstamp& sequence);

/// The signatures of all triggers that have a state: also of those whose definition is malformed at present.
/// Reads a snapshot.
std::vector<std::string> recorded_triggers(kv::Transaction& tx, const docs::Database& database);

/// Returns whether the trigger has seen the document last as existing; nullopt if it has not seen it.
std::optional<bool> decode_seen(const std::optional<std::string>& value);
/// The key of that row, and its value.
std::string seen_key(const IndexKeys& keys, std::string_view id);
std::string_view seen_value(bool exists);

/// The keys of the counter of added jobs, the times of a limited rate, and the last error.
std::string jobs_key(const IndexKeys& keys);
std::string rate_key(const IndexKeys& keys);
std::string last_error_key(const IndexKeys& keys);

}  // namespace divan::index::triggers
