#include "sim/observer.h"

#include <fmt/core.h>

#include "divan/kv/tuple.h"

namespace divan::sim {

const Change* Commit::find(std::string_view key) const {
  const auto at = std::lower_bound(changes.begin(), changes.end(), key,
                                   [](const Change& change, std::string_view k) { return change.key < k; });
  return at != changes.end() && at->key == key ? &*at : nullptr;
}

Observer::Observer(Engine& engine) : engine_(engine) {
  engine_.on_commit = [this](const Written& written) { committed(written); };
}

void Observer::committed(const Written& written) {
  std::set<std::string> touched = written.keys;
  for (const auto& range : written.ranges) {
    const auto last = rows_.lower_bound(range.end);
    for (auto row = rows_.lower_bound(range.begin); row != last; ++row) touched.insert(row->first);
  }
  Commit commit;
  commit.stamp = written.stamp;
  commit.version = written.version;
  commit.began = written.began;
  commit.began_ms = written.began_ms;
  commit.committed_ms = written.committed_ms;
  const auto tx = engine_.database.begin();
  for (const auto& key : touched) {
    const auto before = rows_.find(key);
    Change change{key, {}, tx->get(key, kv::Isolation::snapshot)};
    if (before != rows_.end()) change.before = before->second;
    if (change.before == change.after) continue;
    if (change.after) {
      rows_[key] = *change.after;
    } else {
      rows_.erase(before);
    }
    commit.changes.push_back(std::move(change));
  }
  for (Invariant* invariant : invariants_) invariant->check(commit, rows_);
}

void Observer::check_copy() {
  auto expected = rows_.begin();
  engine_.database.dump([&](std::string_view key, std::string_view value) {
    if (expected == rows_.end() || expected->first != key || expected->second != value) {
      engine_.world.fail(
          fmt::format("The store has a row that no commit wrote: {}", kv::tuple::describe(key)));
      return false;
    }
    ++expected;
    return true;
  });
  if (expected != rows_.end()) {
    engine_.world.fail(fmt::format("The store has lost a row: {}", kv::tuple::describe(expected->first)));
  }
}

}  // namespace divan::sim
