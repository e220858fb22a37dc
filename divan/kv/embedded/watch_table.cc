#include "divan/kv/embedded/watch_table.h"

#include <algorithm>

#include "divan/base/check.h"

namespace divan::kv::embedded {
namespace {

// A key's value as watches see it.
class Present {
 public:
  Present(const Snapshot& now, std::string key) : key_(std::move(key)) {
    try {
      value_ = now.get(key_);
    } catch (const Error&) { readable_ = false; }
  }

  const std::string& key() const { return key_; }
  // A value that cannot be read fires the watch, too.
  bool differs(const std::optional<std::string>& seen) const { return !readable_ || value_ != seen; }

 private:
  std::string key_;
  std::optional<std::string> value_;
  bool readable_ = true;
};

}  // namespace

void WatchTable::admit(const std::shared_ptr<Watch>& watch) {
  std::lock_guard lock(mutex_);
  if (size() >= limit_) forget_dead();
  if (size() >= limit_) throw Error(ErrorCode::too_many_watches);
  const bool is_new = admitted_.insert(watch).second;
  DIVAN_CHECK(is_new && size() <= limit_, "{} watches of at most {}", size(), limit_);
}

void WatchTable::add(const WatchRequest& request,
                     const std::function<std::shared_ptr<const Snapshot>()>& latest) {
  {
    std::lock_guard lock(mutex_);
    admitted_.erase(request.watch);
    entries_.emplace(request.key, Entry{request.seen, request.watch});
  }
  // A commit publishes its snapshot first and reads the table afterwards: either it finds the entry, or
  // the snapshot taken here shows its change.
  if (Present(*latest(), request.key).differs(request.seen)) request.watch->fire();
}

void WatchTable::check(const std::vector<std::string>& keys, const Snapshot& now) {
  // Reads without the lock, which the next commit and every new watch need: the disk may be slow. A watch
  // that is set meanwhile may be compared with a version before its own, and then fires although nothing
  // changed.
  std::vector<Present> present;
  for (const auto& key : keys) present.emplace_back(now, key);
  std::vector<std::shared_ptr<Watch>> due;
  {
    std::lock_guard lock(mutex_);
    for (const auto& value : present) {
      const auto [first, last] = entries_.equal_range(value.key());
      for (auto entry = first; entry != last;) {
        auto watch = entry->second.watch.lock();
        if (watch && !value.differs(entry->second.seen)) {
          ++entry;
          continue;
        }
        if (watch) due.push_back(std::move(watch));
        entry = entries_.erase(entry);
      }
    }
  }
  for (const auto& watch : due) watch->fire();
}

std::vector<std::string> WatchTable::watched(const std::vector<std::string>& keys,
                                             const std::vector<KeyRange>& ranges) const {
  std::vector<std::string> watched;
  std::lock_guard lock(mutex_);
  if (entries_.empty()) return watched;
  for (const auto& key : keys) {
    if (entries_.contains(key)) watched.push_back(key);
  }
  for (const auto& range : ranges) {
    for (auto entry = entries_.lower_bound(range.begin); entry != entries_.end() && entry->first < range.end;
         entry = entries_.upper_bound(entry->first))
      watched.push_back(entry->first);
  }
  std::sort(watched.begin(), watched.end());
  watched.erase(std::unique(watched.begin(), watched.end()), watched.end());
  return watched;
}

bool WatchTable::empty() const {
  std::lock_guard lock(mutex_);
  return entries_.empty();
}

void WatchTable::cancel_all() {
  Entries entries;
  {
    std::lock_guard lock(mutex_);
    entries.swap(entries_);
  }
  for (const auto& [key, entry] : entries) {
    if (const auto watch = entry.watch.lock()) watch->cancel();
  }
}

void WatchTable::forget_dead() {
  const auto is_dead = [](const std::weak_ptr<Watch>& entry) {
    const auto watch = entry.lock();
    return !watch || watch->fired() || watch->cancelled();
  };
  std::erase_if(entries_, [&](const auto& row) { return is_dead(row.second.watch); });
  std::erase_if(admitted_, is_dead);
}

}  // namespace divan::kv::embedded
