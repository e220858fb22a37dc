#include "divan/updates/feed.h"

#include "divan/base/error.h"
#include "divan/events/channel_name.h"
#include "divan/updates/keys.h"

namespace divan::updates {
namespace {

void visit_range(kv::Transaction& tx, const kv::KeyRange& range, bool reverse, const UpdateVisitor& visit) {
  if (range.begin >= range.end) return;
  const std::size_t prefix = part_key("feed").size();
  tx.scan(range, {.reverse = reverse, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            const auto sequence = kv::tuple::Reader(key.substr(prefix)).take_versionstamp();
            kv::tuple::Reader row(value);
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
  visit_range(tx, {feed_key(since) + '\0', kv::below(part_key("feed")).end}, false, visit);
}

void visit_updates_backwards(kv::Transaction& tx, const kv::Versionstamp& since,
                             const std::optional<kv::Versionstamp>& before, const UpdateVisitor& visit) {
  visit_range(tx, {feed_key(since) + '\0', before ? feed_key(*before) : kv::below(part_key("feed")).end},
              true, visit);
}

kv::Versionstamp last_update(kv::Transaction& tx) {
  kv::Versionstamp last;
  visit_updates_backwards(tx, {}, std::nullopt, [&](const Update& update) {
    last = update.sequence;
    return false;
  });
  return last;
}

const std::string& feed_channel() {
  static const std::string name = events::channel_name({"_updates"});
  return name;
}

}  // namespace divan::updates
