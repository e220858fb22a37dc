#include "divan/docs/catalog.h"

#include <fmt/core.h>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/docs/design_document.h"
#include "divan/docs/document.h"
#include "divan/docs/partition_setting.h"

namespace divan::docs {
namespace {

using events::DatabaseEvent;

constexpr std::size_t kMaxNameBytes = 238;
// Maximum number of databases in the cache.
constexpr std::size_t kMaxCached = 10'000;
// The key of the number that the next database gets.
constexpr std::string_view kNextNumber = "next_db";

std::string record_key(std::string_view name) {
  std::string key;
  kv::tuple::Packer(key).string("dbs").string(name);
  return key;
}

std::string packed(std::string_view text) {
  std::string key;
  kv::tuple::Packer(key).string(text);
  return key;
}

bool is_name(std::string_view name) {
  if (name == "_users" || name == "_replicator" || name == "_global_changes") return true;
  if (name.empty() || name.size() > kMaxNameBytes || name[0] < 'a' || name[0] > 'z') return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_$()+-/") == std::string_view::npos;
}

}  // namespace

void check_database_name(std::string_view name) {
  if (is_name(name)) return;
  if (name.size() > kMaxNameBytes) {
    throw Error(400, "database_name_too_long",
                fmt::format("At least one path segment of `{}` is too long.", name));
  }
  throw Error(
      400, "illegal_database_name",
      fmt::format(
          "Name: '{}'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, "
          "(, ), +, -, and / are allowed. Must begin with a letter.",
          name));
}

std::optional<CatalogRow> read_catalog_row(std::string_view key, std::string_view value) {
  static const std::string prefix = packed("dbs");
  if (!key.starts_with(prefix)) return std::nullopt;
  kv::tuple::Reader name_reader(key.substr(prefix.size()));
  auto name = name_reader.take_string();
  if (!name || !name_reader.at_end()) throw internal_error("A key of the catalog is damaged.");
  kv::tuple::Reader reader(value);
  const auto number = reader.take_int();
  const auto created_ms = reader.take_int();
  const auto is_partitioned = reader.at_end() ? std::optional(false) : reader.take_bool();
  if (!number || !created_ms || !is_partitioned || !reader.at_end())
    throw internal_error(fmt::format("The record of database {} is damaged.", *name));
  return CatalogRow{*std::move(name), *number, *created_ms, *is_partitioned};
}

std::optional<std::int64_t> database_number(std::string_view key) {
  static const std::string prefix = packed("db");
  if (!key.starts_with(prefix)) return std::nullopt;
  return kv::tuple::Reader(key.substr(prefix.size())).take_int();
}

Catalog::Catalog(events::Bus& bus, const Clock& clock)
    : bus_(bus), clock_(clock), max_document_bytes_(kMaxDocumentBytes) {}

std::optional<Database> Catalog::find(kv::Transaction& tx, std::string_view name) {
  const std::string key = record_key(name);
  const auto record = tx.get(key);
  if (!record) return std::nullopt;
  const auto row = read_catalog_row(key, *record);
  Database database(*this, std::string(name), row->number, row->created_ms, row->is_partitioned);
  if (tx.is_remote()) cache_database(database);
  return database;
}

void Catalog::cache_database(const Database& database) {
  std::lock_guard lock(mutex_);
  const auto found = cache_.find(database.name());
  if (found != cache_.end() && found->second.number() == database.number()) return;
  if (found == cache_.end() && cache_.size() >= kMaxCached) cache_.clear();
  cache_.insert_or_assign(database.name(), database);
  DIVAN_CHECK(cache_.size() <= kMaxCached, "{} databases are cached", cache_.size());
}

std::optional<Database> Catalog::prefetch(kv::Prefetch& reads, std::string_view name) {
  reads.key(record_key(name));
  std::lock_guard lock(mutex_);
  const auto found = cache_.find(name);
  return found == cache_.end() ? std::nullopt : std::optional(found->second);
}

Database Catalog::open(kv::Transaction& tx, std::string_view name) {
  auto database = find(tx, name);
  if (!database) throw not_found("Database does not exist.");
  return *std::move(database);
}

std::int64_t Catalog::reserve_number(kv::Transaction& tx) {
  const std::string counter = packed(kNextNumber);
  const std::int64_t number = kv::decode_counter(tx.get(counter));
  tx.add(counter, 1);
  return number;
}

Database Catalog::create(kv::Transaction& tx, std::string_view name, bool is_partitioned) {
  check_database_name(name);
  if (is_partitioned && name.starts_with('_')) throw bad_request("Cannot partition a system database");
  check_new(tx, name);
  const Database database(*this, std::string(name), reserve_number(tx), clock_.wall_ms(), is_partitioned);
  // Rows of the database, from which it is restored.
  if (is_partitioned) tx.set(database.keys().config(kPartitioned), "true");
  return put(tx, database);
}

Database Catalog::adopt(kv::Transaction& tx, std::string_view name, std::int64_t number,
                        std::int64_t created_ms) {
  check_database_name(name);
  // The rows say whether it is partitioned.
  const bool is_partitioned = tx.get(DatabaseKeys(number).config(kPartitioned)) == "true";
  Database database(*this, std::string(name), number, created_ms, is_partitioned);
  if (find(tx, name) && can_adopt(tx, name)) {
    write_record(tx, database);
  } else {
    check_new(tx, name);
    put(tx, database);
  }
  // The database has documents: consumers of its changes must read them.
  changed(tx, database, DatabaseEvent::updated);
  return database;
}

void Catalog::check_new(kv::Transaction& tx, std::string_view name) {
  if (!find(tx, name)) return;
  throw Error(412, "file_exists", "The database could not be created, the file already exists.");
}

bool Catalog::can_adopt(kv::Transaction& tx, std::string_view name) {
  const auto database = find(tx, name);
  if (!database) return true;
  return name == kUsersDatabase && tx.get_range(database->keys().all(), {.limit = 1}).rows.empty();
}

void Catalog::write_record(kv::Transaction& tx, const Database& database) {
  DIVAN_CHECK(is_name(database.name()), "a database with an invalid name is recorded");
  std::string record;
  kv::tuple::Packer packer(record);
  packer.integer(database.number()).integer(database.created_ms());
  if (database.is_partitioned()) packer.boolean(true);
  tx.set(record_key(database.name()), record);
  if (tx.is_remote()) cache_database(database);
}

Database Catalog::put(kv::Transaction& tx, Database database) {
  write_record(tx, database);
  changed(tx, database, DatabaseEvent::created);
  return database;
}

void Catalog::remove(kv::Transaction& tx, std::string_view name) {
  const Database database = open(tx, name);
  tx.clear(record_key(name));
  tx.clear_range(database.keys().all());
  changed(tx, database, DatabaseEvent::deleted);
}

std::vector<std::string> Catalog::list(kv::Transaction& tx, const ListOptions& options) {
  const kv::KeyRange all = below(packed("dbs"));
  const auto& lower = options.descending ? options.end_key : options.start_key;
  const auto& upper = options.descending ? options.start_key : options.end_key;
  const auto key_of = [&](const std::string& name, bool after) {
    return record_key(name) + (after ? std::string(1, '\0') : "");
  };
  kv::KeyRange range = all;
  if (lower) range.begin = key_of(*lower, options.descending && !options.inclusive_end);
  if (upper) range.end = key_of(*upper, options.descending || options.inclusive_end);
  std::vector<std::string> names;
  if (range.begin >= range.end) return names;
  std::size_t skip = options.skip;
  tx.scan(range, {.reverse = options.descending, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view) {
            if (skip > 0) {
              --skip;
              return true;
            }
            kv::tuple::Reader reader(key);
            reader.take_string();
            names.push_back(reader.take_string().value_or(""));
            return options.limit == 0 || names.size() < options.limit;
          });
  return names;
}

void Catalog::changed(kv::Transaction& tx, const Database& database, DatabaseEvent kind, std::string id,
                      std::size_t documents) {
  for (const auto& hook : change_hooks_) hook(tx, database, kind, id);
  tx.after_commit([this, name = database.name(), kind, id = std::move(id), documents] {
    documents_written_.add(documents);
    events::publish_database_event(bus_, name, kind, id);
  });
}

void Catalog::set_compression(Compression compression) {
  std::lock_guard lock(mutex_);
  compression_ = std::move(compression);
}

int Catalog::compression_level(std::string_view content_type, bool is_gzipped) {
  std::lock_guard lock(mutex_);
  return is_gzipped ? compression_.level : compression_.level_for(content_type);
}

void Catalog::check_size(std::string_view id, std::string_view body) const {
  if (body.size() > max_document_bytes_) throw Error(413, "document_too_large", std::string(id));
}

void Catalog::check_document(const IncomingDocument& document, bool new_edits,
                             const Checkpoint& checkpoint) const {
  check_size(document.id, document.body);
  for (const auto& attachment : document.attachments) {
    if (attachment.source == IncomingAttachment::Source::follows)
      throw bad_request(fmt::format("Attachment {} does not follow the document.", attachment.name));
  }
  // What is written in one transaction.
  std::size_t bytes = document.body.size();
  for (const auto& attachment : document.attachments) {
    if (attachment.source != IncomingAttachment::Source::stored && attachment.length > max_attachment_bytes_)
      throw attachment_too_large(attachment.name);
    bytes += attachment.data_bytes() + attachment.name.size() + attachment.content_type.size() +
             kAttachmentRowsBytes;
  }
  if (!document.attachments.empty() && bytes > kMaxDocumentBytes)
    throw Error(413, "attachment_too_large", too_large_reason(document.id));
  if (!is_design(document.id) || document.deleted) return;
  if (new_edits) check_design_members(document.body);
  check_validation_language(document.id, document.body);
  if (!new_edits) return;
  for (const auto& check : design_checks_) check(document.id, document.body, checkpoint);
}

void Catalog::run_design_hooks(kv::Transaction& tx, const Database& database, std::string_view id,
                               std::string_view body) {
  for (const auto& hook : design_hooks_) hook(tx, database, id, body);
}

}  // namespace divan::docs
