#include "divan/docs/database_settings.h"

#include "divan/base/json.h"
#include "divan/docs/sequence.h"

namespace divan::docs {
namespace {

constexpr std::size_t kDefaultRevsLimit = 1000;
constexpr std::int64_t kDefaultPurgeRecords = 1000;

}  // namespace

std::optional<std::string> read_config(kv::Transaction& tx, const Database& database, std::string_view name) {
  return tx.get(database.keys().config(name));
}

void write_config(kv::Transaction& tx, const Database& database, std::string_view name,
                  std::string_view json) {
  tx.set(database.keys().config(name), json);
}

kv::Versionstamp read_position(kv::Transaction& tx, const Database& database, std::string_view name) {
  const auto stored = read_config(tx, database, name);
  const auto text = stored ? json::string_value(*stored) : std::nullopt;
  return text ? parse_sequence(*text) : kv::Versionstamp();
}

void write_position(kv::Transaction& tx, const Database& database, std::string_view name,
                    const kv::Versionstamp& position) {
  write_config(tx, database, name, json::quoted(to_sequence(position)));
}

std::size_t revs_limit(kv::Transaction& tx, const Database& database) {
  const auto stored = read_config(tx, database, kRevsLimit);
  const auto limit = stored ? json::int_value(*stored) : std::nullopt;
  return limit && *limit > 0 ? static_cast<std::size_t>(*limit) : kDefaultRevsLimit;
}

std::int64_t purge_records_limit(kv::Transaction& tx, const Database& database) {
  const auto stored = read_config(tx, database, kPurgeRecordsLimit);
  const auto limit = stored ? json::int_value(*stored) : std::nullopt;
  return limit && *limit > 0 ? *limit : kDefaultPurgeRecords;
}

}  // namespace divan::docs
