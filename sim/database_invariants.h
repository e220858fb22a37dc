// Invariants of databases, their changes, the updates feed, and the readers of both.
#pragma once

#include "divan/updates/feed.h"
#include "sim/database_model.h"

namespace divan::sim {

/// The state of a reader of a database's changes, which survives crashes.
struct ChangesReader {
  static constexpr std::int64_t kNone = -1;
  std::int64_t database = kNone;  // its number; kNone: it does not exist
  kv::Versionstamp since;
  struct Known {
    kv::Versionstamp sequence;
    docs::Revision winner;
    bool deleted = false;
  };
  std::map<std::string, Known> documents;
};

/// The state of a reader of the updates feed.
struct FeedReader {
  kv::Versionstamp since;
  std::map<std::pair<std::string, std::string>, kv::Versionstamp> rows;  // by database and kind
};

class DatabaseInvariants final : public Invariant {
 public:
  DatabaseInvariants(Engine& engine, const Clock& clock);

  void check(const Commit& commit, const Rows& rows) override;

  /// By number.
  const std::map<std::int64_t, DatabaseModel>& databases() const { return databases_; }

  /// Compares the result that a client got for the transaction with this token with what was committed.
  /// `result` is nullopt if the result is unknown.
  void compare(const std::string& token, std::optional<bool> result);

  /// Fails if the reader, which has read all changes at `version`, lacks one.
  void check_reader(const ChangesReader& reader, std::string_view name, kv::Version version);
  /// Fails if a reader got a body that was not written for this revision.
  void check_body(std::int64_t database, const docs::Change& change, std::string_view body);
  /// Returns an event that the reader lacks. For a time when all events are in the feed, and all of it was
  /// read.
  std::optional<std::string> missing_of(const FeedReader& reader) const;

  docs::Database open(std::int64_t number) { return {catalog_, databases_.at(number).name, number, 0}; }

 private:
  // The versions of the last events of a database's name.
  struct Events {
    kv::Version created = 0, updated = 0, deleted = 0;
  };
  void begin_or_end(const Lifecycle& lifecycle, const Commit& commit);
  void check_database(std::int64_t number, const std::set<std::string>& edited, const Commit& commit,
                      kv::Transaction& tx);
  void check_document(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                      const DocumentModel& model);

  void check_feed(const std::string& name, const Events& events, const Rows& rows);

  Engine& engine_;
  World& world_;
  events::Bus bus_;  // unused
  docs::Catalog catalog_;
  std::map<std::int64_t, DatabaseModel> databases_;
  std::set<std::int64_t> ended_;
  std::map<std::string, Events> events_;
  std::set<std::string> done_;
};

}  // namespace divan::sim
