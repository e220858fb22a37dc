// What must hold of databases, their changes and the updates feed after every commit, and of those who follow
// them.
#pragma once

#include "divan/updates/feed.h"
#include "sim/database_model.h"

namespace divan::sim {

/// What a reader of a database's changes knows, as it keeps it over crashes.
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

/// What a reader of the updates feed knows.
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

  /// For an actor that was told that what it did by this token is done, or not. `told` is nullopt if it does
  /// not know.
  void compare(const std::string& token, std::optional<bool> told);

  /// For a reader that reads on at `version`, and has read all changes that there were.
  void check_reader(const ChangesReader& reader, std::string_view name, kv::Version version);
  /// The body of a revision that a reader got.
  void check_body(std::int64_t database, const docs::Change& change, std::string_view body);
  /// For a time when all updates are in the feed, and all rows of the feed were read.
  std::optional<std::string> missing_of(const FeedReader& reader) const;

  docs::Database open(std::int64_t number) { return {catalog_, databases_.at(number).name, number, 0}; }

 private:
  // When something happened to a database of a name the last time.
  struct Events {
    kv::Version created = 0, updated = 0, deleted = 0;
  };
  void begin_or_end(const Lifecycle& lifecycle, const Commit& commit, const Rows& rows);
  void check_database(std::int64_t number, const std::set<std::string>& edited, const Commit& commit,
                      kv::Transaction& tx);
  void check_document(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                      const DocumentModel& model);

  void check_feed(const std::string& name, const Events& events, const Rows& rows);

  Engine& engine_;
  World& world_;
  events::Bus bus_;  // nobody uses it
  docs::Catalog catalog_;
  std::map<std::int64_t, DatabaseModel> databases_;
  std::set<std::int64_t> ended_;
  std::map<std::string, Events> events_;
  std::set<std::string> done_;
};

}  // namespace divan::sim
