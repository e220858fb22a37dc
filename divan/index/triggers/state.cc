#include "divan/index/triggers/state.h"

#include <algorithm>

#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/database_settings.h"

namespace divan::index::triggers {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

std::string part_of(const IndexKeys& keys, Part part) { return keys.part(static_cast<int>(part)); }

// The settings of a database with the names of the triggers of design documents begin with this.
constexpr std::string_view kSettingPrefix = "triggers/";

std::string setting_name(std::string_view design_id) {
  return std::string(kSettingPrefix) + std::string(design_id);
}

std::vector<std::string> parse_names(std::string_view json) {
  std::vector<std::string> names;
  json::for_each_element(json, [&](std::string_view element) {
    names.push_back(json::string_value(element).value_or(""));
    return true;
  });
  return names;
}

void write_names(kv::Transaction& tx, const docs::Database& database, const std::string& setting,
                 const std::vector<Definition>& definitions) {
  if (definitions.empty()) return tx.clear(database.keys().config(setting));
  std::string json;
  json::Writer writer(json);
  writer.begin_array();
  for (const auto& definition : definitions) writer.string(definition.name);
  writer.end_array();
  docs::write_config(tx, database, setting, json);
}

// Sets a value that ends with a versionstamp, which may be one of this transaction.
void set_stamped(kv::Transaction& tx, const std::string& key, std::string value,
                 const kv::Versionstamp& stamp) {
  Packer packer(value);
  packer.versionstamp(stamp);
  if (stamp.is_complete()) return tx.set(key, value);
  packer.finish_versionstamped();
  tx.set_versionstamped_value(key, value);
}

void write_record(kv::Transaction& tx, const IndexKeys& keys, const TriggerRecord& record) {
  std::string value;
  Packer(value).bytes(record.digest).boolean(record.from_start).boolean(record.tracks_documents);
  set_stamped(tx, part_of(keys, Part::record), std::move(value), record.tracked_since);
}

void start(kv::Transaction& tx, const IndexKeys& keys, const Definition& definition,
           const kv::Versionstamp& now) {
  const auto sequence = definition.from_start ? kv::Versionstamp() : now;
  set_stamped(tx, keys.state(), {}, sequence);
  write_record(tx, keys, {definition.digest, definition.from_start, definition.tracks_documents(), sequence});
}

}  // namespace

void write_state(kv::Transaction& tx, const IndexKeys& keys, const Definition& definition,
                 const kv::Versionstamp& now) {
  auto record = read_record(tx, keys);
  if (record && record->digest == definition.digest) return;
  if (!record || (definition.from_start && !record->from_start)) {
    tx.clear_range(keys.all());
    return start(tx, keys, definition, now);
  }
  const bool tracks = definition.tracks_documents();
  if (tracks && !record->tracks_documents) record->tracked_since = read_sequence(tx, keys);
  if (!tracks) tx.clear_range(kv::below(part_of(keys, Part::seen)));
  tx.clear(rate_key(keys));
  record->digest = definition.digest;
  record->from_start = definition.from_start;
  record->tracks_documents = tracks;
  write_record(tx, keys, *record);
}

std::string trigger_signature(std::string_view design_id, std::string_view name) {
  std::string text;
  json::Writer(text).begin_array().string("trigger").string(design_id).string(name).end_array();
  return sha256(text, kSignatureBytes);
}

std::optional<TriggerRecord> read_record(kv::Transaction& tx, const IndexKeys& keys,
                                         kv::Isolation isolation) {
  const auto value = tx.get(part_of(keys, Part::record), isolation);
  if (!value) return std::nullopt;
  Reader reader(*value);
  auto digest = reader.take_bytes();
  const auto from_start = reader.take_bool(), tracks = reader.take_bool();
  const auto since = reader.take_versionstamp();
  if (!digest || !from_start || !tracks || !since || !reader.at_end())
    throw internal_error("The record of a trigger in the store is damaged.");
  return TriggerRecord{*std::move(digest), *from_start, *tracks, *since};
}

void update_triggers(kv::Transaction& tx, const docs::Database& database, const std::string& design_id,
                     std::string_view body, const kv::Versionstamp& sequence) {
  std::vector<Definition> definitions;
  try {
    if (!body.empty()) definitions = parse_definitions(design_id, body);
  } catch (const Error& error) {
    return log::warning("The triggers of `{}` in `{}` wait until they are valid: {}", design_id,
                        database.name(), error.reason());
  }
  const std::string setting = setting_name(design_id);
  const auto before = parse_names(docs::read_config(tx, database, setting).value_or("[]"));
  if (before.empty() && definitions.empty()) return;
  for (const auto& name : before) {
    if (std::ranges::find(definitions, name, &Definition::name) == definitions.end())
      tx.clear_range(IndexKeys(database, trigger_signature(design_id, name)).all());
  }
  for (const auto& definition : definitions) {
    const IndexKeys keys(database, trigger_signature(design_id, definition.name));
    write_state(tx, keys, definition, sequence);
  }
  write_names(tx, database, setting, definitions);
}

std::vector<std::string> recorded_triggers(kv::Transaction& tx, const docs::Database& database) {
  std::vector<std::string> signatures;
  const std::string section = database.keys().section(docs::Section::config);
  // The settings whose name begins with the prefix: "/" is followed by "0".
  kv::KeyRange range{database.keys().config(kSettingPrefix), database.keys().config("triggers0")};
  tx.scan(range, {.isolation = kv::Isolation::snapshot}, [&](std::string_view key, std::string_view value) {
    const auto name = Reader(key.substr(section.size())).take_string();
    if (!name || !name->starts_with(kSettingPrefix)) return true;
    for (const auto& trigger : parse_names(value))
      signatures.push_back(trigger_signature(name->substr(kSettingPrefix.size()), trigger));
    return true;
  });
  return signatures;
}

std::optional<bool> decode_seen(const std::optional<std::string>& value) {
  if (!value) return std::nullopt;
  return *value == seen_value(true);
}

std::string seen_key(const IndexKeys& keys, std::string_view id) {
  std::string key = part_of(keys, Part::seen);
  Packer(key).string(id);
  return key;
}

std::string_view seen_value(bool exists) { return exists ? "1" : "0"; }

std::string jobs_key(const IndexKeys& keys) { return part_of(keys, Part::jobs); }
std::string rate_key(const IndexKeys& keys) { return part_of(keys, Part::rate); }
std::string last_error_key(const IndexKeys& keys) { return part_of(keys, Part::last_error); }

}  // namespace divan::index::triggers
