#include "divan/kv/embedded/watch_table.h"

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
  // A value that cannot be read is a reason to look, too.
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
  admitted_.insert(watch);
}

void WatchTable::add(WatchRequest request, const std::function<std::shared_ptr<const Snapshot>()>& latest) {
  {
    std::lock_guard lock(mutex_);
    admitted_.erase(request.watch);
    entries_.emplace(request.key, Entry{request.seen, request.watch});
  }
  // A commit publishes its snapshot first and looks at the table afterwards: either it finds the entry, or
  // the snapshot taken here shows its change.
  if (Present(*latest(), request.key).differs(request.seen)) request.watch->fire();
}

void WatchTable::check(const std::vector<std::string>& keys, const std::vector<KeyRange>& ranges,
                       const Snapshot& now) {
  std::vector<std::shared_ptr<Watch>> due;
  {
    std::lock_guard lock(mutex_);
    if (entries_.empty()) return;
    for (const auto& key : keys) {
      const auto [first, last] = entries_.equal_range(key);
      collect(first, last, now, due);
    }
    for (const auto& range : ranges) {
      collect(entries_.lower_bound(range.begin), entries_.lower_bound(range.end), now, due);
    }
  }
  for (const auto& watch : due) watch->fire();
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

void WatchTable::collect(Entries::iterator first, Entries::iterator last, const Snapshot& now,
                         std::vector<std::shared_ptr<Watch>>& due) {
  // Thousands may wait for one key: it is read once.
  std::optional<Present> present;
  while (first != last) {
    auto watch = first->second.watch.lock();
    if (watch && (!present || present->key() != first->first)) present.emplace(now, first->first);
    if (watch && !present->differs(first->second.seen)) {
      ++first;
      continue;
    }
    if (watch) due.push_back(std::move(watch));
    first = entries_.erase(first);
  }
}

}  // namespace divan::kv::embedded
