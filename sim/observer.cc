#include "sim/observer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "divan/kv/stamping.h"
#include "divan/kv/tuple.h"

namespace divan::sim {

const Change* Commit::find(std::string_view key) const {
  const auto at = std::lower_bound(changes.begin(), changes.end(), key,
                                   [](const Change& change, std::string_view k) { return change.key < k; });
  return at != changes.end() && at->key == key ? &*at : nullptr;
}

std::string note_prefix(std::string_view kind) {
  std::string prefix;
  kv::tuple::Packer(prefix).string("sim").string(kind);
  return prefix;
}

void for_each_note(World& world, const Commit& commit, std::string_view kind,
                   const std::function<void(kv::tuple::Reader&)>& fn) {
  const std::string prefix = note_prefix(kind);
  for (const auto& change : commit.changes) {
    if (!change.key.starts_with(prefix)) continue;
    if (change.before || kv::decode_counter(change.after) != 1) {
      world.fail(fmt::format("A transaction was committed twice: {}", kv::tuple::describe(change.key)));
    }
    kv::tuple::Reader reader(std::string_view(change.key).substr(prefix.size()));
    fn(reader);
  }
}

Observer::Observer(Engine& engine) : engine_(engine) {
  engine_.on_commit = [this](const Written& written) { committed(written); };
}

Observer::Outcome Observer::outcome_of(const Written& written) const {
  Outcome outcome;
  const auto before = [&](const std::string& key) -> std::optional<std::string> {
    if (const auto changed = outcome.find(key); changed != outcome.end()) return changed->second;
    const auto row = rows_.find(key);
    return row == rows_.end() ? std::nullopt : std::optional(row->second);
  };
  const auto stamped = [&](std::string_view bytes) {
    const std::uint32_t offset = kv::take_stamp_offset(bytes);
    return kv::stamped(bytes, offset, written.stamp);
  };
  for (const auto& write : written.writes) {
    switch (write.kind) {
      case Write::Kind::set: outcome[write.key] = write.value; break;
      case Write::Kind::clear: outcome[write.key].reset(); break;
      case Write::Kind::clear_range: {
        const auto last = rows_.lower_bound(write.value);
        for (auto row = rows_.lower_bound(write.key); row != last; ++row) outcome[row->first].reset();
        const auto end = outcome.lower_bound(write.value);
        for (auto row = outcome.lower_bound(write.key); row != end; ++row) row->second.reset();
        break;
      }
      case Write::Kind::atomic:
        outcome[write.key] = kv::apply_atomic(write.op, before(write.key), write.value);
        break;
      case Write::Kind::stamped_key: outcome[stamped(write.key)] = write.value; break;
      case Write::Kind::stamped_value: outcome[write.key] = stamped(write.value); break;
    }
  }
  return outcome;
}

void Observer::committed(const Written& written) {
  Commit commit;
  commit.stamp = written.stamp;
  commit.version = written.version;
  commit.began = written.began;
  commit.began_ms = written.began_ms;
  commit.committed_ms = written.committed_ms;
  const auto tx = engine_.database().begin();
  for (const auto& [key, after] : outcome_of(written)) {
    if (tx->get(key, kv::Isolation::snapshot) != after)
      engine_.world.fail(
          fmt::format("A commit did not write what it was to write: {}", kv::tuple::describe(key)));
    const auto before = rows_.find(key);
    Change change{key, {}, after};
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

bool Observer::equals_engine() const {
  auto expected = rows_.begin();
  bool same = true;
  engine_.database().dump([&](std::string_view key, std::string_view value) {
    same = expected != rows_.end() && expected->first == key && expected->second == value;
    if (same) ++expected;
    return same;
  });
  return same && expected == rows_.end();
}

void Observer::check_restarted() {
  if (const auto interrupted = std::exchange(engine_.interrupted, std::nullopt); interrupted) {
    const bool committed_it = !equals_engine();
    engine_.world.count(committed_it ? "power cut: was committed" : "power cut: was not committed");
    engine_.world.trace(committed_it ? "the last commit was made" : "the last commit was not made");
    if (committed_it) committed(*interrupted);
  }
  check_copy();
}

void Observer::check_copy() {
  auto expected = rows_.begin();
  engine_.database().dump([&](std::string_view key, std::string_view value) {
    if (expected == rows_.end() || expected->first != key || expected->second != value) {
      engine_.world.fail(
          fmt::format("The store has a row that no commit has written: {}", kv::tuple::describe(key)));
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
