#include "divan/backup/restores.h"

#include <fmt/core.h>

#include <set>

#include "divan/backup/format.h"
#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/uploads.h"
#include "divan/kv/tuple.h"

namespace divan::backup {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr Duration kCollectInterval = std::chrono::minutes(1);
// The most bytes of rows per transaction: well below the store's limit, and small enough not to delay others.
constexpr std::size_t kTransactionBytes = 1 << 20;

std::string open_prefix() {
  std::string key;
  Packer(key).string("restore").string("open");
  return key;
}

std::string open_key(std::string_view id) {
  std::string key = open_prefix();
  Packer(key).string(id);
  return key;
}

std::string database_prefix(std::string_view id) {
  std::string key;
  Packer(key).string("restore").string("db").string(id);
  return key;
}

// Followed by the key of an upload's row.
std::string upload_prefix(std::string_view id) {
  std::string key;
  Packer(key).string("restore").string("uploads").string(id);
  return key;
}

Error no_restore() { return not_found("Unknown restore: it was finished, abandoned or never begun."); }

Error damaged() { return internal_error("A restore's row in the store is damaged."); }

template <class Value>
Value required(std::optional<Value> value) {
  if (!value) throw damaged();
  return *std::move(value);
}

}  // namespace

Restores::Restores(kv::Database& store, docs::Catalog& catalog, const Clock& clock, Rng& rng)
    : store_(store), catalog_(catalog), clock_(clock), rng_(rng), loop_(clock, "restores", [this] {
        try {
          collect();
        } catch (const std::exception& error) {
          log::error("Cannot clear unfinished restores: {}", error.what());
        }
        return clock_.now() + kCollectInterval;
      }) {}

std::string Restores::begin(const std::vector<RestoredDatabase>& databases, kv::Version version) {
  if (version < 0 || version > kMaxRaisedVersion) throw bad_request("The backup's version is out of range.");
  std::set<std::string_view> names;
  std::set<std::int64_t> numbers;
  for (const auto& database : databases) {
    docs::check_database_name(database.name);
    if (!names.insert(database.name).second || !numbers.insert(database.number).second)
      throw bad_request(fmt::format("Database {} or its number occurs twice.", database.name));
  }
  check_size(databases);
  const std::string id = rng_.uuid();
  store_.run([&](kv::Transaction& tx) {
    for (const auto& database : databases) check_free(tx, database.name);
    for (const auto& database : databases) {
      std::string key = database_prefix(id), value;
      Packer(key).integer(database.number);
      Packer(value).integer(catalog_.reserve_number(tx)).string(database.name).integer(database.created_ms);
      tx.set(key, value);
    }
    write(tx, id, {});
  });
  store_.advance_version(version);
  return id;
}

void Restores::check_free(kv::Transaction& tx, const std::string& name) {
  if (catalog_.can_adopt(tx, name)) return;
  throw Error(412, "file_exists", fmt::format("Database {} exists already; nothing was restored.", name));
}

// Tries the transaction of finish() without committing it.
void Restores::check_size(const std::vector<RestoredDatabase>& databases) {
  constexpr std::size_t kMaxBytes = kv::kMaxTransactionBytes / 10 * 9;
  const auto tx = store_.begin();
  for (const auto& database : databases) {
    check_free(*tx, database.name);
    adopt(*tx, {INT64_MAX, database.name, database.created_ms});
    if (tx->approximate_size() > kMaxBytes) {
      throw Error(
          413, "too_many_databases",
          fmt::format("{} databases are too many for one restore, which creates them in one transaction. "
                      "Restore some of them at a time, or all into a new directory.",
                      databases.size()));
    }
  }
}

void Restores::adopt(kv::Transaction& tx, const Target& target) {
  const auto database = catalog_.adopt(tx, target.name, target.number, target.created_ms);
  // The age of rows cannot be derived from the versions of another store (divan/purge).
  docs::write_config(tx, database, docs::kRestoredAt, std::to_string(clock_.wall_ms()));
}

void Restores::add(const std::string& id, std::int64_t number, std::string_view piece) {
  const Targets databases = store_.run([&](kv::Transaction& tx) {
    read(tx, id);
    return targets(tx, id);
  });
  std::int64_t rows = 0;
  // Validate the whole piece before anything is written.
  visit_moved(databases, piece, [&](const std::string&, std::string_view) { ++rows; });
  // Decoded rows may be many times larger than the piece, so they are never all in memory.
  std::vector<kv::KeyValue> batch;
  std::size_t bytes = 0;
  std::int64_t visited = 0;
  bool is_added = false;
  const auto write_batch = [&](bool last) {
    is_added = is_added || store_.run([&](kv::Transaction& tx) {
      // Read in each transaction, so that none commits after the restore has advanced or ended.
      Progress progress = read(tx, id);
      if (progress.next_piece > number) return true;
      if (progress.next_piece < number)
        throw conflict(fmt::format("Unexpected piece; expected piece {}.", progress.next_piece));
      for (const auto& row : batch) {
        tx.set(row.key, row.value);
        if (const auto upload = docs::upload_row_of_marker(row.key)) tx.set(upload_prefix(id) + *upload, "");
      }
      if (last) {
        ++progress.next_piece;
        progress.rows += rows;
        write(tx, id, progress);
      }
      return last;
    });
    batch.clear();
    bytes = 0;
  };
  visit_moved(databases, piece, [&](std::string key, std::string_view value) {
    if (is_added) return;
    ++visited;
    bytes += key.size() + value.size();
    batch.push_back({std::move(key), std::string(value)});
    if (bytes >= kTransactionBytes) write_batch(false);
  });
  DIVAN_CHECK(is_added || visited == rows, "a piece had {} rows, and then {}", rows, visited);
  write_batch(true);
}

// Visits the rows of a piece, with the databases' new numbers.
void Restores::visit_moved(const Targets& databases, std::string_view piece,
                           const std::function<void(std::string key, std::string_view value)>& visit) {
  Parser parser([&](std::string_view key, std::string_view value) {
    Reader reader(key);
    const bool is_of_database = reader.take_string() == "db";
    const auto found = is_of_database ? databases.find(reader.take_int().value_or(-1)) : databases.end();
    if (found == databases.end() || reader.at_end())
      throw bad_request("A piece has a row that does not belong to the restore's databases.");
    std::string moved = docs::DatabaseKeys(found->second.number).prefix() + std::string(reader.rest());
    if (moved.size() > kv::kMaxKeyBytes)
      throw bad_request("A key with its database's new number is too long.");
    visit(std::move(moved), value);
  });
  parser.feed(piece);
  parser.end();
}

void Restores::finish(const std::string& id, std::int64_t rows) {
  store_.run([&](kv::Transaction& tx) {
    auto progress = find(tx, id);
    if (!progress) throw no_restore();
    if (progress->rows != rows)
      throw bad_request(fmt::format("The restore has {} rows; expected {}.", progress->rows, rows));
    if (progress->finished()) return;
    for (const auto& [number, target] : targets(tx, id)) {
      check_free(tx, target.name);
      adopt(tx, target);
    }
    // A restored upload is not continued; its row outside of the database, by which it is found, is not part
    // of the backup.
    const std::string uploads = upload_prefix(id);
    tx.scan(kv::below(uploads), {}, [&](std::string_view key, std::string_view) {
      tx.set(key.substr(uploads.size()), "");
      return true;
    });
    tx.clear_range(kv::below(uploads));
    // The response can be lost and the request repeated.
    progress->next_piece = kFinished;
    write(tx, id, *progress);
    tx.clear_range(kv::below(database_prefix(id)));
  });
}

void Restores::abandon(const std::string& id) {
  store_.run([&](kv::Transaction& tx) {
    read(tx, id);
    clear(tx, id);
  });
}

std::size_t Restores::collect() {
  const std::string prefix = open_prefix();
  std::map<std::string, std::string> open;  // rows by id
  store_.run([&](kv::Transaction& tx) {
    open.clear();
    tx.scan(kv::below(prefix), {.isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view value) {
              if (auto id = Reader(key.substr(prefix.size())).take_string()) {
                open.emplace(*std::move(id), value);
              } else {
                log::error("A restore's row in the store is damaged and skipped: {}",
                           kv::tuple::describe(key));
              }
              return true;
            });
  });
  observed_.retain([&](const std::string& id) { return open.contains(id); });
  std::size_t collected = 0;
  for (const auto& entry : open) {
    const std::string& id = entry.first;
    const std::string& row = entry.second;
    if (observed_.observe(id, row, clock_.now()) < kRestoreTimeout) continue;
    try {
      collected += store_.run([&](kv::Transaction& tx) -> std::size_t {
        if (tx.get(open_key(id)) != row) return 0;
        const auto progress = find(tx, id);
        DIVAN_CHECK(progress, "two reads of a restore's row in one transaction differ");
        clear(tx, id);
        return progress->finished() ? 0 : 1;
      });
    } catch (const Error& error) { log::error("Cannot clear restore {}: {}", id, error.what()); }
  }
  if (collected > 0) log::info("Cleared {} unfinished restores.", collected);
  return collected;
}

std::optional<Restores::Progress> Restores::find(kv::Transaction& tx, const std::string& id) {
  const auto row = tx.get(open_key(id));
  if (!row) return std::nullopt;
  Reader reader(*row);
  Progress progress;
  progress.next_piece = required(reader.take_int());
  progress.rows = required(reader.take_int());
  return progress;
}

Restores::Progress Restores::read(kv::Transaction& tx, const std::string& id) {
  auto progress = find(tx, id);
  if (!progress || progress->finished()) throw no_restore();
  return *progress;
}

void Restores::write(kv::Transaction& tx, const std::string& id, const Progress& progress) {
  std::string value;
  Packer(value).integer(progress.next_piece).integer(progress.rows).integer(clock_.wall_ms());
  tx.set(open_key(id), value);
}

Restores::Targets Restores::targets(kv::Transaction& tx, const std::string& id) {
  const std::string prefix = database_prefix(id);
  Targets found;
  tx.scan(kv::below(prefix), {}, [&](std::string_view key, std::string_view value) {
    const auto number = required(Reader(key.substr(prefix.size())).take_int());
    Reader reader(value);
    const auto target = required(reader.take_int());
    auto name = required(reader.take_string());
    found.emplace(number, Target{target, std::move(name), required(reader.take_int())});
    return true;
  });
  return found;
}

void Restores::clear(kv::Transaction& tx, const std::string& id) {
  for (const auto& [number, target] : targets(tx, id)) {
    tx.clear_range(docs::DatabaseKeys(target.number).all());
  }
  tx.clear(open_key(id));
  tx.clear_range(kv::below(database_prefix(id)));
  tx.clear_range(kv::below(upload_prefix(id)));
}

}  // namespace divan::backup
