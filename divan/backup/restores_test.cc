#include "divan/backup/restores.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include <utility>

#include "divan/backup/backup.h"
#include "divan/base/error.h"
#include "divan/docs/changes.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/reader.h"
#include "divan/docs/uploads.h"
#include "divan/docs/writer.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/forwarding.h"

namespace divan::backup {
namespace {

using kv::Transaction;

struct Node {
  ManualClock clock;
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  events::Bus bus;
  docs::Catalog catalog{bus, clock};
  Restores restores{*store, catalog, clock, rng};

  void write(const std::string& name, int first, int count) {
    std::vector<docs::IncomingDocument> documents;
    for (int i = first; i < first + count; ++i) {
      documents.push_back(docs::parse_document(fmt::format(R"({{"_id":"{}","n":{}}})", i, i)));
    }
    docs::bulk_edit(*store, catalog, name, documents, rng);
  }
  std::int64_t documents(const std::string& name) {
    return store->run([&](Transaction& tx) { return docs::read_info(tx, catalog.open(tx, name)).doc_count; });
  }
  std::vector<std::string> names() {
    return store->run([&](Transaction& tx) { return catalog.list(tx); });
  }
  std::size_t rows() {
    std::size_t count = 0;
    store->dump([&](std::string_view, std::string_view) { return ++count > 0; });
    return count;
  }
};

// The rows of a database as pieces.
struct Pieces {
  RestoredDatabase database;
  kv::Version version = 0;
  std::vector<std::string> bytes;
  std::int64_t rows = 0;
};

std::string piece_of(const std::vector<kv::KeyValue>& rows) {
  std::string bytes;
  Writer writer({}, [&](std::string_view piece) {
    bytes += piece;
    return true;
  });
  for (const auto& row : rows) writer.add(row.key, row.value);
  writer.finish(1);
  return bytes;
}

Pieces pieces_of(Node& node, const std::string& name, std::size_t rows_each) {
  Pieces pieces;
  std::vector<kv::KeyValue> rows;
  const auto number = node.store->run([&](Transaction& tx) { return node.catalog.open(tx, name).number(); });
  const auto flush = [&] {
    pieces.bytes.push_back(piece_of(rows));
    rows.clear();
  };
  pieces.version = node.store->dump([&](std::string_view key, std::string_view value) {
    if (docs::database_number(key) != number) return true;
    rows.push_back({std::string(key), std::string(value)});
    ++pieces.rows;
    if (rows.size() == rows_each) flush();
    return true;
  });
  flush();
  pieces.database = {name, number, 5};
  return pieces;
}

struct RestoresTest : testing::Test {
  Node source, target;
  Pieces pieces;

  void SetUp() override {
    source.store->run([&](Transaction& tx) {
      source.catalog.create(tx, "before");
      source.catalog.create(tx, "shop");
    });
    source.write("shop", 0, 20);
    pieces = pieces_of(source, "shop", 15);
    ASSERT_GT(pieces.bytes.size(), 3u);
  }

  std::string begin() { return target.restores.begin({pieces.database}, pieces.version); }
  void add_all(const std::string& id) {
    for (std::size_t i = 0; i < pieces.bytes.size(); ++i)
      target.restores.add(id, static_cast<std::int64_t>(i), pieces.bytes[i]);
  }
  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
      return {};
    } catch (const Error& error) { return error.name(); }
  }
};

TEST_F(RestoresTest, AnUploadInTheBackupIsRemovedLater) {
  docs::Uploads others(*source.store, source.catalog, source.clock, source.rng);
  docs::Upload upload(others, "shop", 6);
  const std::string content(1000, 'x');
  source.store->run([&](Transaction& tx) { upload.write(tx, upload.encode(content)); });
  pieces = pieces_of(source, "shop", 15);
  docs::Uploads uploads(*target.store, target.catalog, target.clock, target.rng);
  EXPECT_EQ(uploads.collect(), 0u);
  const std::string abandoned = begin();
  add_all(abandoned);
  target.restores.abandon(abandoned);
  const std::string id = begin();
  add_all(id);
  // The restore may take long.
  target.clock.advance(2 * docs::kUploadTimeout);
  EXPECT_EQ(uploads.collect(), 0u);
  target.restores.finish(id, pieces.rows);
  const auto before = target.rows();
  target.clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(uploads.collect(), 0u);
  target.clock.advance(docs::kUploadTimeout);
  EXPECT_EQ(uploads.collect(), 1u);
  // The chunk, its marker, and the row outside of the database.
  EXPECT_EQ(target.rows(), before - 3);
}

TEST_F(RestoresTest, TheDatabaseAppearsAtTheEnd) {
  std::vector<std::string> changes;
  target.catalog.on_change(
      [&](Transaction&, const docs::Database& database, events::DatabaseEvent kind, std::string_view) {
        changes.push_back(fmt::format("{} {}", database.name(), static_cast<int>(kind)));
      });
  const std::string id = begin();
  changes.clear();  // begin() tried whether they fit one transaction
  add_all(id);
  EXPECT_TRUE(target.names().empty());
  EXPECT_TRUE(changes.empty());
  target.restores.finish(id, pieces.rows);
  EXPECT_THAT(target.names(), testing::ElementsAre("shop"));
  EXPECT_EQ(target.documents("shop"), 20);
  target.store->run([&](Transaction& tx) {
    EXPECT_EQ(docs::read_config(tx, target.catalog.open(tx, "shop"), docs::kRestoredAt),
              std::to_string(target.clock.wall_ms()));
  });
  EXPECT_EQ(changes.size(), 2u);
  // No other rows are left after a while, and sequences continue.
  EXPECT_EQ(target.restores.collect(), 0u);
  target.clock.advance(kRestoreTimeout);
  EXPECT_EQ(target.restores.collect(), 0u);
  EXPECT_EQ(target.rows(), static_cast<std::size_t>(pieces.rows) + 3);
  target.write("shop", 20, 1);
  target.store->run([&](Transaction& tx) {
    const auto database = target.catalog.open(tx, "shop");
    EXPECT_EQ(database.created_ms(), 5);
    std::string last;
    docs::visit_changes(tx, database, {}, [&](const docs::Change& change) {
      last = change.id;
      return true;
    });
    EXPECT_EQ(last, "20");
  });
}

TEST_F(RestoresTest, PiecesMustBeInOrderAndMayBeRepeated) {
  const std::string id = begin();
  target.restores.add(id, 0, pieces.bytes[0]);
  EXPECT_EQ(refusal([&] { target.restores.add(id, 2, pieces.bytes[2]); }), "conflict");
  target.restores.add(id, 0, pieces.bytes[0]);
  for (std::size_t i = 1; i < pieces.bytes.size(); ++i) {
    target.restores.add(id, static_cast<std::int64_t>(i), pieces.bytes[i]);
    target.restores.add(id, i - 1, pieces.bytes[i - 1]);
  }
  EXPECT_EQ(refusal([&] { target.restores.finish(id, pieces.rows - 1); }), "bad_request");
  EXPECT_TRUE(target.names().empty());
  target.restores.finish(id, pieces.rows);
  EXPECT_EQ(target.documents("shop"), 20);
  // Late pieces are rejected.
  EXPECT_EQ(refusal([&] { target.restores.add(id, 0, pieces.bytes[0]); }), "not_found");
  EXPECT_EQ(refusal([&] { target.restores.abandon(id); }), "not_found");
  target.restores.finish(id, pieces.rows);
  EXPECT_EQ(refusal([&] { target.restores.finish(id, pieces.rows - 1); }), "bad_request");
  EXPECT_EQ(target.documents("shop"), 20);
  target.restores.collect();
  target.clock.advance(kRestoreTimeout - std::chrono::seconds(1));
  target.restores.collect();
  target.restores.finish(id, pieces.rows);
  target.clock.advance(std::chrono::seconds(1));
  target.restores.collect();
  EXPECT_EQ(refusal([&] { target.restores.finish(id, pieces.rows); }), "not_found");
}

TEST_F(RestoresTest, AnAbandonedRestoreIsCleared) {
  const std::string id = begin();
  add_all(id);
  target.restores.abandon(id);
  EXPECT_EQ(target.rows(), 1u);  // the number is not used again
  EXPECT_EQ(refusal([&] { target.restores.finish(id, pieces.rows); }), "not_found");
}

TEST_F(RestoresTest, AnInactiveRestoreIsClearedAfterItsTimeout) {
  const std::string silent = begin();
  target.restores.add(silent, 0, pieces.bytes[0]);
  EXPECT_EQ(target.restores.collect(), 0u);
  target.clock.advance(kRestoreTimeout / 2);
  const std::string heard = begin();
  EXPECT_EQ(target.restores.collect(), 0u);
  target.clock.advance(kRestoreTimeout / 2 - std::chrono::seconds(1));
  target.restores.add(heard, 0, pieces.bytes[0]);
  EXPECT_EQ(target.restores.collect(), 0u);
  target.clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(target.restores.collect(), 1u);
  EXPECT_EQ(refusal([&] { target.restores.add(silent, 1, pieces.bytes[1]); }), "not_found");
  target.clock.advance(kRestoreTimeout - std::chrono::seconds(2));
  EXPECT_EQ(target.restores.collect(), 0u);
  for (std::size_t i = 1; i < pieces.bytes.size(); ++i) target.restores.add(heard, i, pieces.bytes[i]);
  target.restores.finish(heard, pieces.rows);
  EXPECT_EQ(target.documents("shop"), 20);
  EXPECT_EQ(target.rows(),
            static_cast<std::size_t>(pieces.rows) + 4);  // including the row of the finished restore
}

// A system clock that is set forward or back.
class SetClock final : public Clock {
 public:
  SetClock(const Clock& time, std::int64_t wall_ms) : time_(time), wall_ms_(wall_ms) {}
  MonotonicTime now() const override { return time_.now(); }
  std::int64_t wall_ms() const override { return wall_ms_; }
  bool wait_until(std::unique_lock<Mutex>& lock, ConditionVariable& changed, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    return time_.wait_until(lock, changed, deadline, done);
  }

 private:
  const Clock& time_;
  const std::int64_t wall_ms_;
};

TEST_F(RestoresTest, SettingTheClockDoesNotAbandonARestore) {
  for (const std::int64_t wall_ms : {0LL, 4'000'000'000'000LL}) {
    const SetClock clock(target.clock, wall_ms);
    Restores elsewhere(*target.store, target.catalog, clock, target.rng);
    const std::string id = begin();
    EXPECT_EQ(elsewhere.collect(), 0u);
    target.clock.advance(kRestoreTimeout - std::chrono::seconds(1));
    EXPECT_EQ(elsewhere.collect(), 0u);
    target.restores.add(id, 0, pieces.bytes[0]);
    EXPECT_EQ(elsewhere.collect(), 0u);
    target.clock.advance(kRestoreTimeout);
    EXPECT_EQ(elsewhere.collect(), 1u);
  }
}

// A piece that arrives after collect() has read an inactive restore, and before it clears it, keeps the
// restore.
TEST_F(RestoresTest, APieceAtTheLastMomentKeepsARestore) {
  class Interposed final : public kv::ForwardingDatabase {
   public:
    using ForwardingDatabase::ForwardingDatabase;
    std::unique_ptr<Transaction> begin() override {
      if (before_second_ && ++begun_ == 2) std::exchange(before_second_, {})();
      return inner().begin();
    }
    void before_second(std::function<void()> call) { before_second_ = std::move(call); }

   private:
    std::function<void()> before_second_;
    int begun_ = 0;
  };
  Interposed store(*target.store);
  Restores elsewhere(store, target.catalog, target.clock, target.rng);
  const std::string id = begin();
  EXPECT_EQ(elsewhere.collect(), 0u);
  target.clock.advance(kRestoreTimeout);
  store.before_second([&] { target.restores.add(id, 0, pieces.bytes[0]); });
  EXPECT_EQ(elsewhere.collect(), 0u);
  target.restores.add(id, 1, pieces.bytes[1]);
}

TEST_F(RestoresTest, ADamagedRowDoesNotBlockOthers) {
  std::string damaged, damaged_name;
  kv::tuple::Packer(damaged).string("restore").string("open").string("0");
  kv::tuple::Packer(damaged_name).string("restore").string("open").integer(0);
  target.store->run([&](Transaction& tx) {
    tx.set(damaged, "x");
    tx.set(damaged_name, "x");
  });
  begin();
  EXPECT_EQ(target.restores.collect(), 0u);
  target.clock.advance(kRestoreTimeout);
  EXPECT_EQ(target.restores.collect(), 1u);
}

// Every server creates an empty one, which a restore may replace.
TEST_F(RestoresTest, AnUnusedDatabaseOfUsersIsReplaced) {
  const std::string users(docs::kUsersDatabase);
  target.store->run([&](Transaction& tx) { target.catalog.create(tx, users); });
  pieces.database.name = users;
  const std::string id = begin();
  add_all(id);
  EXPECT_EQ(target.documents(users), 0);
  target.restores.finish(id, pieces.rows);
  EXPECT_EQ(target.documents(users), 20);
  EXPECT_EQ(target.names(), std::vector{users});
  EXPECT_EQ(refusal([&] { begin(); }), "file_exists");
}

TEST_F(RestoresTest, ADatabaseOfUsersThatIsInUseIsNotReplaced) {
  const std::string users(docs::kUsersDatabase);
  target.store->run([&](Transaction& tx) { target.catalog.create(tx, users); });
  pieces.database.name = users;
  const std::string id = begin();
  add_all(id);
  target.write(users, 0, 1);
  EXPECT_EQ(refusal([&] { target.restores.finish(id, pieces.rows); }), "file_exists");
  EXPECT_EQ(target.documents(users), 1);
}

TEST_F(RestoresTest, ADatabaseCreatedMeanwhileIsNotReplaced) {
  const std::string id = begin();
  add_all(id);
  target.store->run([&](Transaction& tx) { target.catalog.create(tx, "shop"); });
  EXPECT_EQ(refusal([&] { target.restores.finish(id, pieces.rows); }), "file_exists");
  EXPECT_EQ(target.documents("shop"), 0);
  EXPECT_EQ(refusal([&] { begin(); }), "file_exists");
  target.store->run([&](Transaction& tx) { target.catalog.remove(tx, "shop"); });
  target.restores.finish(id, pieces.rows);
  EXPECT_EQ(target.documents("shop"), 20);
}

// The last transaction must be able to create them all.
TEST_F(RestoresTest, TooManyDatabasesAreRejectedAtOnce) {
  const auto databases = [](int count) {
    std::vector<RestoredDatabase> all;
    for (int i = 0; i < count; ++i) all.push_back({"n" + std::string(200, 'x') + std::to_string(i), i, 1});
    return all;
  };
  const auto before = target.rows();
  int most = 64'000, least = 0;
  while (most - least > 500) {
    const int count = (most + least) / 2;
    const auto refused =
        refusal([&] { target.restores.abandon(target.restores.begin(databases(count), 1)); });
    EXPECT_THAT(refused, testing::AnyOf("", "too_many_databases"));
    (refused.empty() ? least : most) = count;
  }
  EXPECT_GT(least, 2000);
  EXPECT_LE(target.rows(), before + 1);
  target.restores.finish(target.restores.begin(databases(least), 1), 0);
  EXPECT_EQ(target.names().size(), static_cast<std::size_t>(least));
}

TEST_F(RestoresTest, VersionsContinue) {
  EXPECT_EQ(refusal([&] { target.restores.begin({pieces.database}, kMaxRaisedVersion + 1); }), "bad_request");
  const auto id = target.restores.begin({pieces.database}, kMaxRaisedVersion);
  add_all(id);
  target.restores.finish(id, pieces.rows);
  Parser parser([](std::string_view, std::string_view) {});
  EXPECT_TRUE(write_backup(*target.store, {}, [&](std::string_view bytes) {
    parser.feed(bytes);
    return true;
  }));
  EXPECT_GT(parser.end().version, kMaxRaisedVersion);
}

TEST_F(RestoresTest, APieceMayBeMuchLargerThanItsBytes) {
  const auto key_of = [&](std::string_view name, std::int64_t other = 0) {
    std::string key;
    kv::tuple::Packer(key).string("db").integer(pieces.database.number + other);
    return key + std::string(9'000, 'k') + std::string(name);
  };
  std::vector<kv::KeyValue> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back({key_of(fmt::format("{:04}", i)), "x"});
  const std::string piece = piece_of(rows);
  EXPECT_LT(piece.size(), 100'000u);
  const std::string id = begin();
  // The last block is damaged: no row of the others is written.
  const std::size_t before = target.rows();
  EXPECT_EQ(refusal([&] { target.restores.add(id, 0, piece.substr(0, piece.size() - 1)); }), "bad_backup");
  rows.push_back({key_of("", 1), "x"});
  EXPECT_EQ(refusal([&] { target.restores.add(id, 0, piece_of(rows)); }), "bad_request");
  EXPECT_EQ(target.rows(), before);
  const auto commits = target.store->stats().commits;
  target.restores.add(id, 0, piece);
  EXPECT_GE(target.store->stats().commits - commits, 9u);
  EXPECT_EQ(target.rows(), before + 1000);
  target.restores.add(id, 0, piece);
  EXPECT_EQ(target.rows(), before + 1000);
  target.restores.finish(id, 1000);
  EXPECT_THAT(target.names(), testing::ElementsAre("shop"));
}

TEST_F(RestoresTest, OtherRowsAreRejected) {
  const std::string id = begin();
  const auto key_of = [](auto&&... numbers) {
    std::string key;
    kv::tuple::Packer packer(key);
    packer.string("db");
    (packer.integer(numbers), ...);
    return key;
  };
  std::string server;
  kv::tuple::Packer(server).string("server_uuid");
  for (const auto& key :
       {server, key_of(pieces.database.number + 1, 0), key_of(pieces.database.number), key_of()}) {
    EXPECT_EQ(refusal([&] { target.restores.add(id, 0, piece_of({{key, "x"}})); }), "bad_request");
  }
  EXPECT_EQ(refusal([&] { target.restores.add(id, 0, pieces.bytes[0].substr(0, 40)); }), "bad_backup");
  add_all(id);
  target.restores.finish(id, pieces.rows);
}

TEST(WholeBackup, RoundTrip) {
  Node source, target;
  source.store->run([&](Transaction& tx) { source.catalog.create(tx, "shop"); });
  source.write("shop", 0, 20);
  std::string bytes;
  ASSERT_TRUE(write_backup(*source.store, {"1", "uuid", 5}, [&](std::string_view piece) {
    bytes += piece;
    return true;
  }));
  RowLoader loader(*target.store);
  Parser parser([&](std::string_view key, std::string_view value) { loader.add(key, value); });
  parser.feed(bytes);
  loader.finish(parser.end().version);
  EXPECT_EQ(target.documents("shop"), 20);
  EXPECT_EQ(target.rows(), source.rows());
  EXPECT_GE(target.store->begin()->read_version(), source.store->begin()->read_version());
}

}  // namespace
}  // namespace divan::backup
