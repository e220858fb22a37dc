// Databases by name.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/mutex.h"
#include "divan/base/rng.h"
#include "divan/base/striped.h"
#include "divan/docs/compression.h"
#include "divan/docs/keys.h"
#include "divan/events/database_events.h"
#include "divan/kv/store.h"

namespace divan::docs {

/// Throws illegal_database_name or database_name_too_long (400), in CouchDB's words, unless `name` is a valid
/// database name: lower-case letters, digits and _$()+-/, beginning with a letter, at most 238 bytes; or one
/// of CouchDB's system databases (_users and so on).
void check_database_name(std::string_view name);

/// The database of the users' documents, which every store has (api/user_documents.h).
inline constexpr std::string_view kUsersDatabase = "_users";

/// A row of the catalog, for readers of whole stores.
struct CatalogRow {
  std::string name;
  std::int64_t number = 0;
  std::int64_t created_ms = 0;
  bool is_partitioned = false;
};
/// Decodes a row; nullopt if it is not a row of the catalog. Throws an internal error if it is damaged.
std::optional<CatalogRow> read_catalog_row(std::string_view key, std::string_view value);

/// The number of the database that a key belongs to; nullopt if it does not belong to a database.
std::optional<std::int64_t> database_number(std::string_view key);

class Catalog;

/// A database that exists as of some transaction: its name and its keys. A value type. In another transaction
/// than the one that opened it, it must be used for snapshot reads only.
class Database {
 public:
  Database(Catalog& catalog, std::string name, std::int64_t number, std::int64_t created_ms,
           bool is_partitioned = false)
      : catalog_(&catalog),
        name_(std::move(name)),
        number_(number),
        created_ms_(created_ms),
        is_partitioned_(is_partitioned),
        keys_(number) {}

  Catalog& catalog() const { return *catalog_; }
  const std::string& name() const { return name_; }
  /// Unique among all databases, including earlier and later ones of this name.
  std::int64_t number() const { return number_; }
  std::int64_t created_ms() const { return created_ms_; }
  /// See partition.h.
  bool is_partitioned() const { return is_partitioned_; }
  const DatabaseKeys& keys() const { return keys_; }

 private:
  Catalog* catalog_;
  std::string name_;
  std::int64_t number_;
  std::int64_t created_ms_;
  bool is_partitioned_;
  DatabaseKeys keys_;
};

/// Called inside the transaction in which an event happens to a database; `id` as in Event::id.
using ChangeHook =
    std::function<void(kv::Transaction&, const Database&, events::DatabaseEvent kind, std::string_view id)>;

/// Called inside the transaction that writes a design document, with its id and body, before it is written.
using DesignHook =
    std::function<void(kv::Transaction&, const Database&, std::string_view id, std::string_view body)>;

/// Called inside the transaction that writes a design document, in whatever way, or purges one, afterwards:
/// with the body of its winner, empty if it does not exist any more, and the sequence of the write, which is
/// incomplete.
using DesignWinnerHook = std::function<void(kv::Transaction&, const Database&, const std::string& id,
                                            std::string_view body, const kv::Versionstamp& sequence)>;

/// Called between the steps of long work, such as the compilation of functions; throws to cancel it.
using Checkpoint = std::function<void()>;

/// Checks a design document before it is written; throws divan::Error to reject it. Called outside of any
/// transaction: it may take seconds, since functions are compiled. `checkpoint` may be empty.
using DesignCheck =
    std::function<void(std::string_view id, std::string_view body, const Checkpoint& checkpoint)>;

struct IncomingDocument;

/// All databases of a store. Thread-safe, except for the registration of hooks, which must happen at
/// start-up.
class Catalog {
 public:
  Catalog(events::Bus& bus, const Clock& clock);

  void on_change(ChangeHook hook) { change_hooks_.push_back(std::move(hook)); }
  void on_design_document(DesignHook hook) { design_hooks_.push_back(std::move(hook)); }
  void on_design_winner(DesignWinnerHook hook) { design_winner_hooks_.push_back(std::move(hook)); }
  void on_design_check(DesignCheck check) { design_checks_.push_back(std::move(check)); }

  /// Sets the largest body of a document in bytes, at most kMaxDocumentBytes.
  void set_max_document_bytes(std::size_t bytes) { max_document_bytes_ = bytes; }
  /// Sets the largest content of an attachment in bytes.
  void set_max_attachment_bytes(std::uint64_t bytes) { max_attachment_bytes_ = bytes; }
  std::uint64_t max_attachment_bytes() const { return max_attachment_bytes_; }
  /// Sets which contents of attachments are compressed; none until then.
  void set_compression(Compression compression);
  /// The level for contents of this type (Compression::level_for()), or of any type if the client has
  /// compressed them.
  int compression_level(std::string_view content_type, bool is_gzipped);

  /// Sets how many replaced revisions of a leaf are kept until a compaction, at most kMaxOldRevisions.
  void set_max_old_revisions(std::size_t number) { max_old_revisions_ = number; }
  std::size_t max_old_revisions() const { return max_old_revisions_; }

  /// Throws file_exists (412) or illegal_database_name; bad_request for a system database that is to be
  /// partitioned.
  Database create(kv::Transaction& tx, std::string_view name, bool is_partitioned = false);

  /// Reserves the number of a database that adopt() will create. Until then what is written below it is not
  /// part of any database.
  std::int64_t reserve_number(kv::Transaction& tx);

  /// Returns true if adopt() may be called: the name is free, or is _users and that database was never used.
  /// Every server creates an empty _users, which would otherwise conflict with the one of a backup.
  bool can_adopt(kv::Transaction& tx, std::string_view name);

  /// Creates a database from the rows that already exist below `number`. Throws like create(), unless
  /// can_adopt().
  Database adopt(kv::Transaction& tx, std::string_view name, std::int64_t number, std::int64_t created_ms);

  /// Clears everything in the database. Throws not_found (404).
  void remove(kv::Transaction& tx, std::string_view name);

  /// Throws not_found (404, "Database does not exist."). The transaction conflicts with a removal of the
  /// database.
  Database open(kv::Transaction& tx, std::string_view name);
  std::optional<Database> find(kv::Transaction& tx, std::string_view name);

  /// Prefetches what open() reads. On a remote store, returns the database as it was when this process last
  /// opened it, if it has: a guess at where its rows are.
  std::optional<Database> prefetch(kv::Prefetch& reads, std::string_view name);

  /// Which names list() returns.
  struct ListOptions {
    std::optional<std::string> start_key;
    std::optional<std::string> end_key;
    std::size_t limit = 0;  // 0: all
    std::size_t skip = 0;
    bool inclusive_end = true;
    bool descending = false;
  };
  std::vector<std::string> list(kv::Transaction& tx, const ListOptions& options);
  std::vector<std::string> list(kv::Transaction& tx) { return list(tx, ListOptions()); }

  /// Must be called by modules that change documents or indexes: runs the hooks, and publishes the event
  /// after the commit. `documents`: how many were written, for documents_written().
  void changed(kv::Transaction& tx, const Database& database, events::DatabaseEvent kind, std::string id = {},
               std::size_t documents = 0);
  /// How many documents, with design documents and deletions, transactions of this process have written.
  std::uint64_t documents_written() const { return documents_written_.total(); }
  /// Throws if a document (not a local one) must be rejected whatever the database contains: not_implemented
  /// (501) for `validate_doc_update` in another language than JavaScript, document_too_large and
  /// attachment_too_large (413), invalid_design_doc (400), or what a check of design documents throws. Must
  /// be called before the transaction that writes the document, since it may take seconds. Replicated design
  /// documents (`new_edits` is false) are only checked for its language: another server has accepted them.
  void check_document(const IncomingDocument& document, bool new_edits,
                      const Checkpoint& checkpoint = {}) const;
  /// Throws document_too_large (413).
  void check_size(std::string_view id, std::string_view body) const;
  /// Must be called by writers: runs the hooks of design documents.
  void run_design_hooks(kv::Transaction& tx, const Database& database, std::string_view id,
                        std::string_view body);
  void run_design_winner_hooks(kv::Transaction& tx, const Database& database, const std::string& id,
                               std::string_view body, const kv::Versionstamp& sequence) {
    for (const auto& hook : design_winner_hooks_) hook(tx, database, id, body, sequence);
  }

  events::Bus& bus() { return bus_; }

 private:
  void check_new(kv::Transaction& tx, std::string_view name);
  void write_record(kv::Transaction& tx, const Database& database);
  void cache_database(const Database& database);
  Database put(kv::Transaction& tx, Database database);

  events::Bus& bus_;
  const Clock& clock_;
  std::vector<ChangeHook> change_hooks_;
  std::vector<DesignHook> design_hooks_;
  std::vector<DesignWinnerHook> design_winner_hooks_;
  std::vector<DesignCheck> design_checks_;
  StripedCounter documents_written_;
  std::atomic<std::size_t> max_document_bytes_;
  std::atomic<std::uint64_t> max_attachment_bytes_ = UINT64_MAX;
  std::atomic<std::size_t> max_old_revisions_ = kDefaultMaxOldRevisions;

  Mutex mutex_{MutexRank::catalog, "Catalog::mutex_"};  // protects the members below
  std::map<std::string, Database, std::less<>> cache_;  // as last opened or created
  Compression compression_;
};

}  // namespace divan::docs
