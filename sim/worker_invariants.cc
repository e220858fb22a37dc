#include "sim/worker_invariants.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/kv/tuple_packer.h"

namespace divan::sim {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

std::string row_key(const WorkerInvariants::Name& name, std::string_view kind) {
  std::string key;
  Packer(key).string("workers").string(name.first).string(kind).string(name.second);
  return key;
}

bool has_members(const std::string& role, const Rows& rows) {
  std::string prefix;
  Packer(prefix).string("workers").string(role).string("w");
  const auto first = rows.upper_bound(prefix);
  return first != rows.end() && first->first.starts_with(prefix);
}

}  // namespace

void WorkerInvariants::check(const Commit& commit, const Rows& rows) {
  std::set<Name> touched;
  std::set<std::string> membership;
  std::map<std::string, const Change*> versions;
  for (const auto& change : commit.changes) {
    Reader reader(change.key);
    if (reader.take_string() != "workers") continue;
    const auto role = reader.take_string().value();
    const auto kind = reader.take_string().value();
    if (kind == "vs") {
      versions[role] = &change;
      continue;
    }
    if (kind == "gone") continue;
    touched.emplace(role, reader.take_string().value());
    if (kind == "w") membership.insert(role);
  }
  for (const auto& name : touched) check_worker(name, rows);
  for (const auto& role : membership) changed_[role] = commit.version;
  // The version of all roles together has an empty name.
  if (!membership.empty()) membership.insert("");
  for (const auto& role : membership) {
    if (!versions.contains(role))
      world_.fail(fmt::format("The members of {} changed and its version did not.", role));
  }
  for (const auto& [role, change] : versions) {
    if (!membership.contains(role)) {
      world_.fail(fmt::format("The version of {} changed and its members did not.", role));
    }
    std::optional<std::string> expected;
    if (role.empty() || has_members(role, rows))
      Packer(expected.emplace()).versionstamp(kv::Versionstamp::complete(commit.stamp));
    if (change->after != expected)
      world_.fail(fmt::format("The version of {} is not the versionstamp of its change.", role));
  }
}

void WorkerInvariants::check_worker(const Name& name, const Rows& rows) {
  const auto row = rows.find(row_key(name, "w"));
  const auto heartbeat = rows.find(row_key(name, "hb"));
  Worker& worker = workers_[name];
  if ((row == rows.end()) != (heartbeat == rows.end())) {
    return world_.fail(fmt::format("Worker {}/{} has {} but no {}.", name.first, name.second,
                                   row == rows.end() ? "a heartbeat" : "a row",
                                   row == rows.end() ? "row" : "heartbeat"));
  }
  if (row == rows.end()) {
    ended(name, worker, false);
    worker = {};
    return;
  }
  Reader reader(row->second);
  const auto incarnation = reader.take_string().value();
  const auto timeout = std::chrono::milliseconds(reader.take_int().value());
  Reader beat(heartbeat->second);
  const auto beating = beat.take_string().value();
  const auto beats = beat.take_int().value();
  if (incarnation != beating) {
    world_.fail(
        fmt::format("The heartbeat of worker {}/{} is another registration's.", name.first, name.second));
  }
  if (gone_.contains(incarnation)) {
    world_.fail(fmt::format("Worker {}/{} was removed and is registered again.", name.first, name.second));
  }
  if (incarnation != worker.incarnation) {
    if (!worker.incarnation.empty()) ended(name, worker, true);
    world_.trace(fmt::format("  worker {}/{} registered", name.first, name.second));
    worker = {incarnation, timeout, beats, world_.now()};
    return;
  }
  if (beats < worker.beats)
    world_.fail(fmt::format("The heartbeats of worker {}/{} decrease.", name.first, name.second));
  if (beats > worker.beats) worker.beat_at = world_.now();
  worker.beats = beats;
  worker.timeout = timeout;
}

void WorkerInvariants::ended(const Name& name, const Worker& worker, bool replaced) {
  gone_.insert(worker.incarnation);
  const char* how = replaced                                ? "replaced"
                    : leaving_.contains(worker.incarnation) ? "unregistered"
                                                            : "evicted";
  world_.count(fmt::format("worker {}", how));
  world_.trace(fmt::format("  worker {}/{} {}", name.first, name.second, how));
  if (replaced || leaving_.contains(worker.incarnation)) return;
  if (world_.now() - worker.beat_at < worker.timeout) {
    world_.fail(fmt::format("Worker {}/{} was evicted before its timeout.", name.first, name.second));
  }
  // A pause of the machine may count only for the wait for the next poll, which it interrupted.
  const auto paused = world_.paused_since(worker.beat_at);
  if (world_.now() - worker.beat_at - paused.duration < worker.timeout - worker.timeout / 2 * paused.times)
    world_.fail(
        fmt::format("Worker {}/{} was evicted because the machine was paused.", name.first, name.second));
  if (paused.times > 0) world_.count("worker evicted after a pause");
}

std::map<WorkerInvariants::Name, std::string> WorkerInvariants::incarnations() const {
  std::map<Name, std::string> present;
  for (const auto& [name, worker] : workers_) {
    if (!worker.incarnation.empty()) present.emplace(name, worker.incarnation);
  }
  return present;
}

bool WorkerInvariants::has_workers(std::string_view role) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) {
    return entry.first.first == role && !entry.second.incarnation.empty();
  });
}

}  // namespace divan::sim
