#include "divan/replicator/document_rows.h"

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/kv/tuple_packer.h"

namespace divan::replicator::rows {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr std::string_view kSection = "replicator";
constexpr std::string_view kChanged = "changed";
constexpr std::string_view kSignal = "signal";
constexpr std::string_view kProcessed = "processed";
constexpr std::string_view kRequested = "requested";
constexpr std::size_t kCounterBytes = 8;

std::string part(std::string_view name) {
  std::string key;
  Packer(key).string(kSection).string(name);
  return key;
}

std::string part(std::string_view name, std::string_view database) {
  std::string key = part(name);
  Packer(key).string(database);
  return key;
}

// Returns false if a row of this section is damaged.
bool is_valid(Reader& key, std::string_view value) {
  const auto name = key.take_string();
  if (name == kSignal) return key.at_end() && value.size() == kCounterBytes;
  if (!key.take_string()) return false;  // the database
  if (name == kChanged) return key.at_end() && value.empty();
  if (name == kRequested) return key.take_string() && key.at_end() && !value.empty() && is_utf8(value);
  if (name != kProcessed || !key.at_end()) return false;
  decode_processed(value);
  return true;
}

}  // namespace

std::string all_changed() { return part(kChanged); }
std::string changed(std::string_view database) { return part(kChanged, database); }

std::optional<std::string> changed_name(std::string_view key) {
  const std::string prefix = all_changed();
  if (!key.starts_with(prefix)) return std::nullopt;
  Reader reader(key.substr(prefix.size()));
  auto name = reader.take_string();
  return reader.at_end() ? name : std::nullopt;
}

std::string signal() { return part(kSignal); }

std::string processed(std::string_view database) { return part(kProcessed, database); }

std::string encode(const Processed& processed) {
  std::string value;
  Packer(value).integer(processed.number).versionstamp(processed.position);
  return value;
}

Processed decode_processed(std::string_view value) {
  Reader reader(value);
  const auto number = reader.take_int();
  const auto position = reader.take_versionstamp();
  if (!number || !position || !reader.at_end())
    throw internal_error("A position in the changes of a replicator database is damaged.");
  return {*number, *position};
}

std::string all_requested(std::string_view database) { return part(kRequested, database); }

std::string requested(std::string_view database, std::string_view document) {
  std::string key = all_requested(database);
  Packer(key).string(document);
  return key;
}

bool Check::row(std::string_view key, std::string_view value) {
  Reader reader(key);
  if (reader.take_string() != kSection) return false;
  try {
    if (!is_valid(reader, value)) findings_.add("a row of the replicator is damaged", key);
  } catch (const Error& error) { findings_.add(error.reason(), key); }
  return true;
}

}  // namespace divan::replicator::rows
