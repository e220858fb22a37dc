#include "divan/updates/feed.h"

#include "divan/base/error.h"
#include "divan/kv/tuple_packer.h"

namespace divan::updates {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

// One shard on the embedded store; on a cluster marks of many databases spread.
constexpr std::int64_t kShard = 0;
// Where CouchDB keeps its feed. Here it is a database like any other, but clients that make it do not expect
// it in the feed.
constexpr std::string_view kOwnDatabase = "_global_changes";

std::string part_key(std::string_view part) {
  std::string key;
  Packer(key).string("updates").string(part);
  return key;
}

std::string feed_key(const kv::Versionstamp& sequence) {
  std::string key = part_key("feed");
  Packer(key).versionstamp(sequence);
  return key;
}

std::string row_key(std::string_view database, std::string_view kind) {
  std::string key = part_key("row");
  Packer(key).string(database).string(kind);
  return key;
}

std::string dirty_prefix() {
  std::string key = part_key("dirty");
  Packer(key).integer(kShard);
  return key;
}

std::string stamped_value(const kv::Versionstamp& stamp) {
  std::string value;
  Packer packer(value);
  packer.versionstamp(stamp).finish_versionstamped();
  return value;
}

std::string mark_key(std::string_view database) {
  std::string key = dirty_prefix();
  Packer(key).string(database);
  return key;
}

// Puts the row at the feed's end: behind everything that is committed before this transaction. `number`
// orders the rows of one transaction.
void move_row(kv::Transaction& tx, std::string_view database, std::string_view kind, std::uint16_t number) {
  const std::string key = row_key(database, kind);
  if (const auto present = tx.get(key)) {
    const auto sequence = Reader(*present).take_versionstamp();
    if (!sequence) throw internal_error("A row of the updates feed in the store is damaged.");
    tx.clear(feed_key(*sequence));
  }
  const auto stamp = kv::Versionstamp::incomplete(number);
  tx.set_versionstamped_value(key, stamped_value(stamp));
  std::string feed = part_key("feed");
  Packer packer(feed);
  packer.versionstamp(stamp).finish_versionstamped();
  std::string value;
  Packer(value).string(database).string(kind);
  tx.set_versionstamped_key(feed, value);
}

void visit_range(kv::Transaction& tx, const kv::KeyRange& range, bool reverse, const UpdateVisitor& visit) {
  if (range.begin >= range.end) return;
  const std::size_t prefix = part_key("feed").size();
  tx.scan(range, {.reverse = reverse, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            const auto sequence = Reader(key.substr(prefix)).take_versionstamp();
            Reader row(value);
            auto database = row.take_string();
            auto kind = row.take_string();
            if (!sequence || !database || !kind) {
              throw internal_error("A row of the updates feed in the store is damaged.");
            }
            return visit({*sequence, *std::move(database), *std::move(kind)});
          });
}

}  // namespace

void visit_updates(kv::Transaction& tx, const kv::Versionstamp& since, const UpdateVisitor& visit) {
  visit_range(tx, {feed_key(since) + '\0', part_key("feed") + '\xff'}, false, visit);
}

void visit_updates_backwards(kv::Transaction& tx, const kv::Versionstamp& since,
                             const std::optional<kv::Versionstamp>& before, const UpdateVisitor& visit) {
  visit_range(tx, {feed_key(since) + '\0', before ? feed_key(*before) : part_key("feed") + '\xff'}, true,
              visit);
}

kv::Versionstamp last_update(kv::Transaction& tx) {
  kv::Versionstamp last;
  visit_updates_backwards(tx, {}, std::nullopt, [&](const Update& update) {
    last = update.sequence;
    return false;
  });
  return last;
}

void record_change(kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind) {
  if (database.name() == kOwnDatabase) return;
  switch (kind) {
    case events::DatabaseEvent::created:
      move_row(tx, database.name(), "created", 0);
      move_row(tx, database.name(), "updated", 1);
      break;
    case events::DatabaseEvent::deleted:
      // What was updated before must not be shown as updated after.
      tx.clear(mark_key(database.name()));
      move_row(tx, database.name(), "deleted", 0);
      break;
    case events::DatabaseEvent::updated:
      tx.set_versionstamped_value(mark_key(database.name()), stamped_value(kv::Versionstamp::incomplete()));
      break;
    default: break;
  }
}

std::size_t sequence_marks(kv::Transaction& tx, std::size_t limit) {
  const std::string prefix = dirty_prefix();
  // A snapshot read: otherwise the writers of a busy database would make this transaction fail for ever. A
  // mark that was set anew meanwhile is not cleared (it is not equal any more) and is found by the next look.
  const auto marks = tx.get_range(kv::below(prefix), {.limit = limit, .isolation = kv::Isolation::snapshot});
  std::uint16_t number = 0;
  for (const auto& mark : marks.rows) {
    const auto database = Reader(std::string_view(mark.key).substr(prefix.size())).take_string();
    if (!database) throw internal_error("A mark of the updates feed in the store is damaged.");
    tx.atomic(kv::AtomicOp::compare_and_clear, mark.key, mark.value);
    // A deletion at the same time takes the mark away: this makes it a conflict.
    tx.get(row_key(*database, "deleted"));
    move_row(tx, *database, "updated", number++);
  }
  return marks.rows.size();
}

void drop_marks(kv::Transaction& tx) {
  const kv::KeyRange marks = kv::below(dirty_prefix());
  const bool none = tx.get_range(marks, {.limit = 1, .isolation = kv::Isolation::snapshot}).rows.empty();
  if (!none) tx.clear_range(marks);
}

std::string feed_channel() { return events::channel_name({"_updates"}); }

}  // namespace divan::updates
