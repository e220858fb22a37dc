#include "divan/updates/recording.h"

#include <algorithm>
#include <array>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/kv/tuple.h"
#include "divan/updates/keys.h"

namespace divan::updates {
namespace {

using events::DatabaseEvent;
using kv::tuple::Packer;
using kv::tuple::Reader;

// One shard on the embedded store; on a cluster marks of many databases spread.
constexpr std::int64_t kShard = 0;

// Events of what is in a database.
constexpr std::array kKindsInside = {DatabaseEvent::ddoc_updated, DatabaseEvent::local_updated,
                                     DatabaseEvent::index_commit};

// A mark, as its key encodes it.
struct Mark {
  std::string database;
  DatabaseEvent kind = DatabaseEvent::updated;
  std::string id;
  std::string node;
  std::string value;
};

const std::string& marks_prefix() {
  static const std::string prefix = [] {
    std::string key = part_key("dirty");
    Packer(key).integer(kShard);
    return key;
  }();
  return prefix;
}

// Without a node, which is the common case and part of every write of documents, it is as short as possible.
std::string mark_key(std::string_view database, DatabaseEvent kind, std::string_view id,
                     std::string_view node) {
  std::string key = marks_prefix();
  Packer packer(key);
  packer.string(database);
  if (!node.empty()) packer.string(events::kind_name(kind)).string(id).string(node);
  return key;
}

std::optional<Mark> read_mark(const kv::KeyValue& row) {
  Reader reader(std::string_view(row.key).substr(marks_prefix().size()));
  const auto database = reader.take_string();
  if (!database) return std::nullopt;
  if (reader.at_end()) return Mark{.database = *database, .value = row.value};
  const auto kind = events::database_event_of(reader.take_string().value_or(""));
  const auto id = reader.take_string();
  const auto node = reader.take_string();
  if (!kind || !id || !node || !reader.at_end()) return std::nullopt;
  return Mark{*database, *kind, *id, *node, row.value};
}

// A damaged row must stop neither the feed of all databases nor the creation and deletion of databases: it is
// removed or replaced, and its event is lost. A row of the feed whose index entry is lost stays; `divan
// verify` reports it.
void log_damaged(std::string_view key) {
  log::error("A row of the updates feed in the store is damaged and was skipped: {}",
             kv::tuple::describe(key));
}

std::string position_key(std::string_view database, DatabaseEvent kind, std::string_view id,
                         std::string_view node) {
  std::string key = positions_key(database);
  Packer(key).string(events::kind_name(kind)).string(id).string(node);
  return key;
}

// Moves rows to the ends of the feed and the log, after all rows of earlier transactions. The transaction
// cannot read what it has moved, so the caller reads everything first.
class Mover {
 public:
  explicit Mover(kv::Transaction& tx) : tx_(tx) {}

  void move_row(std::string_view database, std::string_view kind) {
    std::string value;
    Packer(value).string(database).string(kind);
    move({row_key(database, kind), "feed", std::move(value), tx_.claim_user_version()});
    ++rows_;
  }
  void move_event(std::string_view database, DatabaseEvent kind, std::string_view id, std::string_view node) {
    std::string value;
    Packer(value).string(database).string(events::kind_name(kind)).string(id).string(node);
    move({position_key(database, kind, id, node), "event", std::move(value), tx_.claim_user_version()});
    has_events_ = true;
  }

  // Returns how many rows of the feed were moved.
  std::size_t finish() {
    std::vector<std::string> keys;
    for (const auto& move : moves_) keys.push_back(move.position_key);
    const auto positions = tx_.get_many(keys);
    DIVAN_CHECK(positions.size() == moves_.size(), "{} positions of {} rows", positions.size(),
                moves_.size());
    for (std::size_t i = 0; i < moves_.size(); ++i) write(moves_[i], positions[i]);
    if (has_events_) tx_.set_versionstamped_value(log_changed_key(), stamped_value());
    return rows_;
  }

 private:
  struct Move {
    std::string position_key;
    std::string_view part;
    std::string value;
    std::uint16_t number;  // the user version of its position
  };

  void move(Move row) {
    DIVAN_CHECK(moves_.empty() || row.number > moves_.back().number,
                "row {} of a transaction comes behind row {}", row.number, moves_.back().number);
    moves_.push_back(std::move(row));
  }

  void write(const Move& move, const std::optional<std::string>& before) {
    if (before) {
      if (const auto position = Reader(*before).take_versionstamp()) {
        std::string key = part_key(move.part);
        Packer(key).versionstamp(*position);
        tx_.clear(key);
      } else {
        log_damaged(move.position_key);
      }
    }
    tx_.set_versionstamped_value(move.position_key, stamped_value(move.number));
    std::string key = part_key(move.part);
    Packer packer(key);
    packer.versionstamp(kv::Versionstamp::incomplete(move.number)).finish_versionstamped();
    tx_.set_versionstamped_key(key, move.value);
  }

  kv::Transaction& tx_;
  std::vector<Move> moves_;
  std::size_t rows_ = 0;
  bool has_events_ = false;
};

// After a deletion the feed must not show an earlier update, and the events of the database's contents are
// obsolete.
void forget(kv::Transaction& tx, const std::string& database, const Recording& recording) {
  if (recording.node.empty()) return tx.clear(mark_key(database, DatabaseEvent::updated, {}, {}));
  tx.clear_range(kv::below(mark_key(database, DatabaseEvent::updated, {}, {})));
  for (const auto kind : kKindsInside) {
    std::string prefix = positions_key(database);
    Packer(prefix).string(events::kind_name(kind));
    for (const auto& row : tx.get_range(kv::below(prefix)).rows) {
      tx.clear(row.key);
      if (const auto position = Reader(row.value).take_versionstamp()) {
        tx.clear(event_key(*position));
      } else {
        log_damaged(row.key);
      }
    }
  }
  // For sequence_marks(), whether or not the feed's row moves.
  const std::string row = row_key(database, "deleted");
  tx.add_write_conflict({row, row + '\0'});
}

}  // namespace

bool is_in_feed(DatabaseEvent kind) {
  return std::find(kKindsInside.begin(), kKindsInside.end(), kind) == kKindsInside.end();
}

Recorded record_change(kv::Transaction& tx, const docs::Database& database, DatabaseEvent kind,
                       std::string_view id, const Recording& recording) {
  const std::string& name = database.name();
  const bool in_feed = recording.feed && name != kOwnDatabase && is_in_feed(kind);
  const bool is_shared = !recording.node.empty();
  if (!in_feed && !is_shared) return {};
  if (kind != DatabaseEvent::created && kind != DatabaseEvent::deleted) {
    static const std::string value = stamped_value();
    // Each replication of a client writes a local document: these events have no id.
    if (kind == DatabaseEvent::local_updated) id = {};
    tx.set_versionstamped_value(mark_key(name, kind, id, recording.node), value);
    return {.mark = true};
  }
  if (kind == DatabaseEvent::deleted) forget(tx, name, recording);
  Mover mover(tx);
  if (in_feed) mover.move_row(name, events::kind_name(kind));
  if (in_feed && kind == DatabaseEvent::created) mover.move_row(name, "updated");
  if (is_shared) mover.move_event(name, kind, {}, recording.node);
  return {.rows = mover.finish()};
}

void prefetch_marks(kv::Transaction& tx, std::size_t limit) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  reads.range(kv::below(marks_prefix()), limit);
  tx.prefetch(reads);
}

Sequenced sequence_marks(kv::Transaction& tx, std::size_t limit, const Recording& recording) {
  // A snapshot read: otherwise the writers of a busy database would make this transaction fail for ever. A
  // mark that was set again meanwhile is not cleared, since its value differs, and is read by the next step.
  const auto found =
      tx.get_range(kv::below(marks_prefix()), {.limit = limit, .isolation = kv::Isolation::snapshot});
  DIVAN_CHECK(found.rows.size() <= limit, "{} marks were read of {}", found.rows.size(), limit);
  std::vector<Mark> marks;
  for (const auto& row : found.rows) {
    auto mark = read_mark(row);
    tx.atomic(kv::AtomicOp::compare_and_clear, row.key, row.value);
    if (mark) {
      marks.push_back(*std::move(mark));
    } else {
      log_damaged(row.key);
    }
  }
  // As on their own node, the event of an update comes before those that say what was updated.
  std::stable_partition(marks.begin(), marks.end(),
                        [](const Mark& mark) { return mark.kind == DatabaseEvent::updated; });
  Mover mover(tx);
  std::string_view moved;
  for (const Mark& mark : marks) {
    // A concurrent deletion clears the mark: this makes it a conflict.
    const std::string deleted = row_key(mark.database, "deleted");
    tx.add_read_conflict({deleted, deleted + '\0'});
    if (!mark.node.empty()) mover.move_event(mark.database, mark.kind, mark.id, mark.node);
    const bool in_feed =
        recording.feed && mark.kind == DatabaseEvent::updated && mark.database != kOwnDatabase;
    if (in_feed && mark.database != moved) mover.move_row(mark.database, "updated");
    if (in_feed) moved = mark.database;
  }
  return {found.rows.size(), mover.finish()};
}

std::vector<NodeEvent> read_events(kv::Transaction& tx, const kv::Versionstamp& since, std::size_t limit) {
  const std::size_t prefix = part_key("event").size();
  std::vector<NodeEvent> events;
  tx.scan({event_key(since) + '\0', kv::below(part_key("event")).end},
          {.limit = limit, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            const auto position = Reader(key.substr(prefix)).take_versionstamp();
            Reader reader(value);
            auto database = reader.take_string();
            const auto kind = events::database_event_of(reader.take_string().value_or(""));
            auto id = reader.take_string();
            auto node = reader.take_string();
            if (!position || !database || !kind || !id || !node) {
              throw internal_error("An event of another node in the store is damaged.");
            }
            events.push_back({*position, *std::move(database), *kind, *std::move(id), *std::move(node)});
            return true;
          });
  return events;
}

kv::Versionstamp last_event(kv::Transaction& tx) {
  const std::size_t prefix = part_key("event").size();
  kv::Versionstamp last;
  tx.scan(kv::below(part_key("event")), {.limit = 1, .reverse = true, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view) {
            last = Reader(key.substr(prefix)).take_versionstamp().value_or(kv::Versionstamp());
            return false;
          });
  return last;
}

std::shared_ptr<kv::Watch> watch_events(kv::Transaction& tx) { return tx.try_watch(log_changed_key()); }

}  // namespace divan::updates
