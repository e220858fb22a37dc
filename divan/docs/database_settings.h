// The settings of a database.
#pragma once

#include <optional>
#include <string>

#include "divan/docs/catalog.h"

namespace divan::docs {

/// The name of the setting that revs_limit() reads.
inline constexpr std::string_view kRevsLimit = "revs_limit";
/// The name of the setting that purge_records_limit() reads.
inline constexpr std::string_view kPurgeRecordsLimit = "purged_infos_limit";
/// The name of the settings of automatic purges, a JSON object (divan/purge).
inline constexpr std::string_view kAutoPurge = "auto_purge";
/// The name of the setting with the time of the restore that created the database, in milliseconds since
/// 1970.
inline constexpr std::string_view kRestoredAt = "restored_at";
/// The name of the setting with the sequence up to which the database was compacted (compaction.h).
inline constexpr std::string_view kCompacted = "compacted";
/// The name of the security object.
inline constexpr std::string_view kSecurity = "security";

/// A setting of the database (for example its security object or its revision limit) as JSON text; nullopt if
/// it was never set.
std::optional<std::string> read_config(kv::Transaction& tx, const Database& database, std::string_view name);
void write_config(kv::Transaction& tx, const Database& database, std::string_view name,
                  std::string_view json);

/// A setting that is a position in the changes, as a sequence; zero if it was never set. Such positions say
/// how far the changes have been processed.
kv::Versionstamp read_position(kv::Transaction& tx, const Database& database, std::string_view name);
void write_position(kv::Transaction& tx, const Database& database, std::string_view name,
                    const kv::Versionstamp& position);

/// The number of revisions stored for each leaf; 1000 unless set. A leaf's row holds some 5,300 at most.
std::size_t revs_limit(kv::Transaction& tx, const Database& database);

/// The number of records of purges that are kept; 1000 unless set.
std::int64_t purge_records_limit(kv::Transaction& tx, const Database& database);

}  // namespace divan::docs
