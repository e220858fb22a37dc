#include "divan/workers/registry.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/kv/tuple.h"

namespace divan::workers {
namespace {

using kv::below;
using kv::tuple::Packer;
using kv::tuple::Reader;

// The empty role, which no worker has: its version is that of the last change of any membership.
constexpr std::string_view kAllRoles;

std::string role_key(std::string_view role, std::string_view kind) {
  std::string key;
  Packer(key).string("workers").string(role).string(kind);
  return key;
}

std::string id_key(std::string_view role, std::string_view kind, std::string_view id) {
  std::string key = role_key(role, kind);
  Packer(key).string(id);
  return key;
}

std::string worker_key(std::string_view role, std::string_view id) { return id_key(role, "w", id); }
std::string heartbeat_key(std::string_view role, std::string_view id) { return id_key(role, "hb", id); }
std::string hold_key(std::string_view role, std::string_view id) { return id_key(role, "hold", id); }
std::string load_key(std::string_view role, std::string_view id) { return id_key(role, "load", id); }

std::string encode_hold(const Hold& hold) {
  std::string value;
  Packer(value).string(hold.ref.incarnation).string(hold.token);
  return value;
}

// The version of the transaction that writes it, for set_versionstamped_value().
const std::string& this_version() {
  static const std::string packed = [] {
    std::string value;
    Packer(value).versionstamp(kv::Versionstamp::incomplete()).finish_versionstamped();
    return value;
  }();
  return packed;
}

Error damaged() { return internal_error("A worker's row in the store is damaged."); }

Worker decode_worker(std::string id, std::string_view value) {
  Reader reader(value);
  Worker worker;
  worker.id = std::move(id);
  auto incarnation = reader.take_string();
  const auto timeout_ms = reader.take_int();
  auto options = reader.take_string();
  if (!incarnation || !timeout_ms || !options || !reader.at_end()) throw damaged();
  // Checked before it becomes nanoseconds, which may be too many.
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  if (milliseconds timeout(*timeout_ms); timeout < duration_cast<milliseconds>(kMinTimeout) ||
                                         timeout > duration_cast<milliseconds>(kMaxTimeout)) {
    throw damaged();
  }
  worker.incarnation = *std::move(incarnation);
  worker.timeout = milliseconds(*timeout_ms);
  worker.options = *std::move(options);
  return worker;
}

std::string encode_worker(const Worker& worker) {
  // decode_worker() rejects other timeouts.
  DIVAN_CHECK(worker.timeout >= kMinTimeout && worker.timeout <= kMaxTimeout, "a worker's timeout of {} ns",
              worker.timeout.count());
  std::string value;
  Packer(value)
      .string(worker.incarnation)
      .integer(std::chrono::duration_cast<std::chrono::milliseconds>(worker.timeout).count())
      .string(worker.options);
  return value;
}

std::string encode_heartbeat(std::string_view incarnation, std::int64_t counter) {
  std::string value;
  Packer(value).string(incarnation).integer(counter);
  return value;
}

struct Beat {
  std::string incarnation;
  std::int64_t counter;
};

// nullopt if it is damaged.
std::optional<Beat> decode_heartbeat(std::string_view row) {
  Reader reader(row);
  auto incarnation = reader.take_string();
  const auto counter = reader.take_int();
  if (!incarnation || !counter || !reader.at_end() || *counter < 0 || *counter == INT64_MAX)
    return std::nullopt;
  return Beat{*std::move(incarnation), *counter};
}

std::optional<Worker> read_worker(kv::Transaction& tx, std::string_view role, std::string_view id) {
  const auto row = tx.get(worker_key(role, id));
  if (!row) return std::nullopt;
  return decode_worker(std::string(id), *row);
}

// Calls `visit` for each worker of a role, and `damaged_row` for each row that cannot be read.
void for_each_worker(kv::Transaction& tx, std::string_view role, const std::function<void(Worker)>& visit,
                     const std::function<void(std::string_view key, const Error& error)>& damaged_row) {
  const std::string prefix = role_key(role, "w");
  tx.scan(below(prefix), {}, [&](std::string_view key, std::string_view value) {
    std::optional<Worker> worker;
    try {
      auto id = Reader(key.substr(prefix.size())).take_string();
      if (!id) throw damaged();
      worker = decode_worker(*std::move(id), value);
    } catch (const Error& error) {
      damaged_row(key, error);
      return true;
    }
    visit(*std::move(worker));
    return true;
  });
}

void check_name(std::string_view what, std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes || !is_utf8(name)) {
    throw bad_request(
        fmt::format("Invalid {} of a worker; expected 1 to {} bytes of UTF-8.", what, kMaxNameBytes));
  }
}

}  // namespace

WorkerRef Registry::add(kv::Transaction& tx, std::string_view role, std::string_view id,
                        std::string_view options, Duration timeout, std::string_view incarnation) {
  check_name("role", role);
  check_name("id", id);
  if (timeout < kMinTimeout || timeout > kMaxTimeout) {
    throw bad_request("Invalid timeout of a worker; expected 100 ms to one hour.");
  }
  if (options.size() > kMaxOptionsBytes)
    throw bad_request("Invalid options of a worker; expected at most 10,000 bytes.");
  if (!options.starts_with('{') || !is_utf8(options))
    throw bad_request("Invalid options of a worker; expected a JSON object.");

  // A damaged registration is replaced, like that of another incarnation.
  const auto row = tx.get(worker_key(role, id));
  std::optional<Worker> present;
  try {
    if (row) present = decode_worker(std::string(id), *row);
  } catch (const Error&) {}
  Worker worker{std::string(id), {}, timeout, std::string(options)};
  if (present && present->incarnation == incarnation) {
    worker.incarnation = present->incarnation;
    // To register again shows that the worker is alive.
    heartbeat(tx, {std::string(role), worker.id, worker.incarnation});
    if (present->timeout == timeout && present->options == options) {
      return {std::string(role), worker.id, worker.incarnation};
    }
  } else {
    if (row) clear_rows(tx, role, id);
    worker.incarnation = rng_.uuid();
    tx.set(heartbeat_key(role, id), encode_heartbeat(worker.incarnation, 0));
  }
  tx.set(worker_key(role, id), encode_worker(worker));
  raise_version(tx, role);
  return {std::string(role), worker.id, worker.incarnation};
}

void Registry::prefetch(kv::Prefetch& reads, std::string_view role, std::string_view id) {
  reads.key(worker_key(role, id));
}

void Registry::remove(kv::Transaction& tx, const WorkerRef& ref) {
  if (!is_alive(tx, ref)) throw not_found("No such registration.");
  clear_rows(tx, ref.role, ref.id);
}

void Registry::remove_any(kv::Transaction& tx, std::string_view role, std::string_view id) {
  if (tx.get(worker_key(role, id))) clear_rows(tx, role, id);
}

void Registry::clear_rows(kv::Transaction& tx, std::string_view role, std::string_view id) {
  tx.clear(worker_key(role, id));
  tx.clear(heartbeat_key(role, id));
  tx.clear(hold_key(role, id));
  tx.clear(load_key(role, id));
  raise_version(tx, role);
  remove_if_empty(tx, role);
  for (const auto& hook : hooks_) hook(tx, role, id);
}

// A role without workers has no rows, so that thousands of roles may come and go. Its version is then that of
// the last removal of any role, which is later than all versions that the role had.
void Registry::remove_if_empty(kv::Transaction& tx, std::string_view role) {
  // Serializable: if two transactions remove the last two workers, one of them must see that none is left.
  if (!tx.get_range(below(role_key(role, "w")), {.limit = 1}).rows.empty()) return;
  tx.clear(role_key(role, "vs"));
  tx.set_versionstamped_value(role_key(kAllRoles, "gone"), this_version());
}

void Registry::raise_version(kv::Transaction& tx, std::string_view role) {
  tx.set_versionstamped_value(role_key(role, "vs"), this_version());
  tx.set_versionstamped_value(role_key(kAllRoles, "vs"), this_version());
}

kv::Versionstamp Registry::version(kv::Transaction& tx, std::string_view role) {
  auto version = tx.get(role_key(role, "vs"));
  if (!version && role != kAllRoles) version = tx.get(role_key(kAllRoles, "gone"), kv::Isolation::snapshot);
  return version ? Reader(*version).take_versionstamp().value_or(kv::Versionstamp()) : kv::Versionstamp();
}

bool Registry::heartbeat(kv::Transaction& tx, const WorkerRef& ref) {
  // Reading the row makes a concurrent removal a conflict, so a late heartbeat does not bring a worker back.
  if (!is_alive(tx, ref)) return false;
  const std::string key = heartbeat_key(ref.role, ref.id);
  const auto row = tx.get(key, kv::Isolation::snapshot);
  const auto beat = row ? decode_heartbeat(*row) : std::nullopt;
  const std::int64_t counter = beat ? beat->counter + 1 : 0;
  DIVAN_CHECK(counter >= 0, "heartbeat {}", counter);
  tx.set(key, encode_heartbeat(ref.incarnation, counter));
  return true;
}

void Registry::set_load(kv::Transaction& tx, const WorkerRef& ref, std::string_view load) {
  std::string value;
  Packer(value).string(load);
  tx.set(load_key(ref.role, ref.id), value);
}

std::map<std::string, std::string> Registry::loads(kv::Transaction& tx, std::string_view role) {
  std::map<std::string, std::string> loads;
  const std::string prefix = role_key(role, "load");
  tx.scan(below(prefix), {.isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            auto id = Reader(key.substr(prefix.size())).take_string();
            auto load = Reader(value).take_string();
            if (!id || !load) throw damaged();
            loads.emplace(*std::move(id), *std::move(load));
            return true;
          });
  return loads;
}

Hold Registry::hold(kv::Transaction& tx, const WorkerRef& ref) {
  DIVAN_CHECK(!ref.role.empty() && !ref.id.empty(), "a registration without a name is held");
  Hold hold{ref, rng_.uuid()};
  tx.set(hold_key(ref.role, ref.id), encode_hold(hold));
  return hold;
}

HoldState Registry::state(kv::Transaction& tx, const Hold& hold) {
  if (!is_alive(tx, hold.ref)) return HoldState::ended;
  const bool holds = tx.get(hold_key(hold.ref.role, hold.ref.id)) == encode_hold(hold);
  return holds ? HoldState::holds : HoldState::taken;
}

std::shared_ptr<kv::Watch> Registry::watch(kv::Transaction& tx, const Hold& hold) {
  return tx.try_watch(hold_key(hold.ref.role, hold.ref.id));
}

bool Registry::is_held(kv::Transaction& tx, std::string_view role, std::string_view id) {
  return tx.get(hold_key(role, id), kv::Isolation::snapshot).has_value();
}

void Registry::end_held(kv::Transaction& tx, const Hold& hold) {
  if (state(tx, hold) == HoldState::holds) clear_rows(tx, hold.ref.role, hold.ref.id);
}

bool Registry::is_alive(kv::Transaction& tx, const WorkerRef& ref) {
  return find(tx, ref.role, ref.id) == ref;
}

std::optional<WorkerRef> Registry::find(kv::Transaction& tx, std::string_view role, std::string_view id) {
  const auto worker = read_worker(tx, role, id);
  if (!worker) return std::nullopt;
  return WorkerRef{std::string(role), worker->id, worker->incarnation};
}

Members Registry::members(kv::Transaction& tx, std::string_view role) {
  Members members;
  members.version = version(tx, role);
  for_each_worker(
      tx, role, [&](Worker worker) { members.workers.push_back(std::move(worker)); },
      [](std::string_view, const Error& error) { throw error; });
  return members;
}

std::vector<std::string> Registry::roles(kv::Transaction& tx) {
  std::vector<std::string> roles;
  std::string prefix;
  Packer(prefix).string("workers");
  std::string all = prefix;
  Packer(all).string(kAllRoles);
  kv::KeyRange rest = {below(all).end, below(prefix).end};
  for (;;) {
    const auto page = tx.get_range(rest, {.limit = 1, .isolation = kv::Isolation::snapshot});
    if (page.rows.empty()) return roles;
    auto role = Reader(std::string_view(page.rows[0].key).substr(prefix.size())).take_string();
    if (!role) throw damaged();
    std::string next = prefix;
    Packer(next).string(*role);
    rest.begin = below(next).end;
    roles.push_back(*std::move(role));
  }
}

std::shared_ptr<kv::Watch> Registry::watch(kv::Transaction& tx, std::string_view role) {
  return tx.try_watch(role_key(role, "vs"));
}

std::shared_ptr<kv::Watch> Registry::watch_all(kv::Transaction& tx) {
  return tx.try_watch(role_key(kAllRoles, "vs"));
}

void Registry::refresh(kv::Transaction& tx, Roster& roster) {
  const kv::Versionstamp now = version(tx, kAllRoles);
  if (now == roster.version && now != kv::Versionstamp()) return;
  Roster fresh{now, {}};
  for (const auto& role : roles(tx)) {
    const kv::Versionstamp present = version(tx, role);
    const auto known = roster.roles.find(role);
    if (known != roster.roles.end() && known->second->version == present) {
      fresh.roles.insert(*known);
      continue;
    }
    auto read = std::make_shared<RoleRoster>();
    read->version = present;
    // A damaged row must not keep other workers from being observed.
    for_each_worker(
        tx, role,
        [&](Worker worker) {
          read->workers.emplace(std::move(worker.id),
                                RoleRoster::Entry{std::move(worker.incarnation), worker.timeout});
        },
        [](std::string_view key, const Error& error) {
          log::error("A worker is not observed: {} (At {})", error.reason(), kv::tuple::describe(key));
        });
    fresh.roles.emplace(role, std::move(read));
  }
  roster = std::move(fresh);
}

std::vector<Registry::Heartbeat> Registry::heartbeats(kv::Transaction& tx, std::span<const Name> names,
                                                      const Roster& roster) {
  std::vector<Heartbeat> found;
  std::vector<std::string> keys;
  std::vector<const Name*> single;
  // A damaged heartbeat is left out: its worker is not evicted, and replaces it with its next heartbeat.
  const auto take = [&](std::string_view role, std::string id, std::string_view value) {
    auto beat = decode_heartbeat(value);
    if (!beat) return;
    found.push_back({{std::string(role), std::move(id), std::move(beat->incarnation)}, beat->counter});
  };
  for (std::size_t begin = 0, end = 0; begin < names.size(); begin = end) {
    const std::string& role = names[begin].role;
    DIVAN_CHECK(begin == 0 || names[begin - 1].role < role, "the names are not sorted");
    while (end < names.size() && names[end].role == role) ++end;
    const auto known = roster.roles.find(role);
    const std::size_t all = known == roster.roles.end() ? 0 : known->second->workers.size();
    if ((end - begin) * 2 <= all) {
      for (const auto& name : names.subspan(begin, end - begin)) {
        keys.push_back(heartbeat_key(role, name.id));
        single.push_back(&name);
      }
      continue;
    }
    // For most of a role, a scan costs less than single reads.
    const std::string prefix = role_key(role, "hb");
    const auto wanted = names.subspan(begin, end - begin);
    tx.scan(below(prefix), {.isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view value) {
              auto id = Reader(key.substr(prefix.size())).take_string();
              if (id && std::ranges::binary_search(wanted, *id, {}, &Name::id))
                take(role, *std::move(id), value);
              return true;
            });
  }
  if (keys.empty()) return found;
  const auto rows = tx.get_many(keys, kv::Isolation::snapshot);
  DIVAN_CHECK(rows.size() == single.size(), "{} rows for {} keys", rows.size(), single.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]) take(single[i]->role, single[i]->id, *rows[i]);
  }
  return found;
}

bool Registry::evict(kv::Transaction& tx, const Heartbeat& observed) {
  const auto row = tx.get(heartbeat_key(observed.ref.role, observed.ref.id));
  if (row != encode_heartbeat(observed.ref.incarnation, observed.counter)) return false;
  clear_rows(tx, observed.ref.role, observed.ref.id);
  return true;
}

}  // namespace divan::workers
