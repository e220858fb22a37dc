// Membership: which workers there are, and in which roles. All of it is in the store, so every process sees
// the same.
//
// A worker has a row and a heartbeat, which is a counter that the worker increments. An observer that sees
// the counter unchanged for the worker's timeout, on the observer's own clock, evicts the worker; so clocks
// need not agree. Every registration has an incarnation of its own. It distinguishes what the present worker
// sends from what an evicted one, or an earlier one of the same name, still sends.
//
// A connection may hold a registration; the end of the connection then ends the registration at once. This
// detects processes that die. Heartbeats, which the worker itself sends, detect those that are frozen or
// cannot reach the store.
//
// Keys (docs/keyspace.md): ("workers", role, "vs"), ("workers", role, "w", id), ("workers", role, "hb", id),
// ("workers", role, "hold", id), ("workers", role, "load", id), ("workers", "", "gone").
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/rng.h"
#include "divan/kv/store.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::workers {

inline constexpr Duration kDefaultTimeout = std::chrono::seconds(15);
inline constexpr Duration kMinTimeout = std::chrono::milliseconds(100);
inline constexpr Duration kMaxTimeout = std::chrono::hours(1);
/// The longest role and id, in bytes.
inline constexpr std::size_t kMaxNameBytes = 256;
/// The largest options of a worker, in bytes of JSON.
inline constexpr std::size_t kMaxOptionsBytes = 10'000;

/// The role of the server processes themselves. The options of a node are `address` (its URL; null if it does
/// not listen), `serves` (false for background work only), `version`, `started` (milliseconds since 1970) and
/// `background` (the kinds of work).
inline constexpr std::string_view kNodeRole = "_node";

/// A registration of a worker.
struct WorkerRef {
  std::string role;
  std::string id;
  std::string incarnation;
  auto operator<=>(const WorkerRef&) const = default;
};

/// A worker as others see it.
struct Worker {
  std::string id;
  std::string incarnation;
  Duration timeout{};
  std::string options;  // a JSON object
};

/// The members of a role at a version. Every change of the membership raises the version. Nothing else does,
/// except that the version of a role without workers may rise when another role loses its last one.
struct Members {
  kv::Versionstamp version;
  std::vector<Worker> workers;  // by id
};

/// The tie of a registration to a connection, whose end ends the registration. A later hold of the same
/// registration replaces it.
struct Hold {
  WorkerRef ref;
  std::string token;
};

enum class HoldState {
  holds,  // it is in effect
  taken,  // a later hold of the same registration has replaced it
  ended,  // the registration has ended
};

/// Called in the transaction in which a registration ends: evicted, replaced or removed.
using RemovalHook = std::function<void(kv::Transaction&, std::string_view role, std::string_view id)>;

/// The transactions of the membership. Thread-safe, except on_removal(), which is for start-up.
class Registry {
 public:
  explicit Registry(Rng& rng) : rng_(rng) {}

  void on_removal(RemovalHook hook) { hooks_.push_back(std::move(hook)); }

  /// Registers a worker. With the `incarnation` of the present registration, that one is kept: its options
  /// and timeout are set, and its heartbeat is incremented. Otherwise a worker of the same name is replaced.
  /// Throws bad_request for names, timeouts or options beyond the limits.
  WorkerRef add(kv::Transaction& tx, std::string_view role, std::string_view id, std::string_view options,
                Duration timeout = kDefaultTimeout, std::string_view incarnation = {});

  /// Removes it; throws not_found if the registration has ended.
  void remove(kv::Transaction& tx, const WorkerRef& ref);

  /// Removes the worker of this name if there is one.
  void remove_any(kv::Transaction& tx, std::string_view role, std::string_view id);

  /// Increments the heartbeat. Returns false, and writes nothing, if the registration has ended.
  bool heartbeat(kv::Transaction& tx, const WorkerRef& ref);

  /// Stores how busy a worker is, as a JSON object, in the transaction of a heartbeat.
  void set_load(kv::Transaction& tx, const WorkerRef& ref, std::string_view load);
  /// The loads of the workers of a role that have one, by id. Reads a snapshot.
  std::map<std::string, std::string> loads(kv::Transaction& tx, std::string_view role);

  /// Lets a connection hold a registration. The transaction must have read that it exists.
  Hold hold(kv::Transaction& tx, const WorkerRef& ref);
  HoldState state(kv::Transaction& tx, const Hold& hold);
  /// A watch on the hold. It fires when the hold is replaced or the registration ends, if not earlier. It is
  /// null if the store has too many watches, as are those below (Transaction::try_watch).
  std::shared_ptr<kv::Watch> watch(kv::Transaction& tx, const Hold& hold);
  /// Returns true if a connection has held the registration since it began. The connection may have ended
  /// unnoticed, with the server that had it. Reads a snapshot.
  bool is_held(kv::Transaction& tx, std::string_view role, std::string_view id);
  /// Called when the connection has ended: ends the registration, unless another connection holds it now.
  void end_held(kv::Transaction& tx, const Hold& hold);

  /// Returns true if the registration exists. The transaction conflicts with its end.
  bool is_alive(kv::Transaction& tx, const WorkerRef& ref);

  /// The present registration of a worker, or nullopt. The transaction conflicts with its end.
  std::optional<WorkerRef> find(kv::Transaction& tx, std::string_view role, std::string_view id);
  /// Adds what find() reads, for Transaction::prefetch().
  static void prefetch(kv::Prefetch& reads, std::string_view role, std::string_view id);

  Members members(kv::Transaction& tx, std::string_view role);

  /// The roles that have workers.
  std::vector<std::string> roles(kv::Transaction& tx);

  /// A watch on the membership of a role.
  std::shared_ptr<kv::Watch> watch(kv::Transaction& tx, std::string_view role);
  /// A watch on the membership of any role.
  std::shared_ptr<kv::Watch> watch_all(kv::Transaction& tx);

  /// The registrations of a role as of a version of its membership.
  struct RoleRoster {
    kv::Versionstamp version;
    struct Entry {
      std::string incarnation;
      Duration timeout{};
    };
    std::map<std::string, Entry, std::less<>> workers;  // by id
  };
  /// The registrations of all roles as of a version of all memberships.
  struct Roster {
    kv::Versionstamp version;
    std::map<std::string, std::shared_ptr<const RoleRoster>, std::less<>> roles;
  };
  /// Updates a roster that an earlier call has read. Reads one row if no membership has changed, otherwise
  /// the version of each role and the rows of the roles that have changed.
  void refresh(kv::Transaction& tx, Roster& roster);

  /// Removes the row of a role without workers, which earlier versions of this program kept.
  void remove_if_empty(kv::Transaction& tx, std::string_view role);

  /// A heartbeat as an observer sees it.
  struct Heartbeat {
    WorkerRef ref;
    std::int64_t counter = 0;
  };
  /// A worker by its name.
  struct Name {
    std::string role;
    std::string id;
    auto operator<=>(const Name&) const = default;
  };
  /// The heartbeats of the named workers, in any order; workers without a heartbeat are left out. `names`
  /// must be sorted. Reads a snapshot.
  std::vector<Heartbeat> heartbeats(kv::Transaction& tx, std::span<const Name> names, const Roster& roster);

  /// Removes a worker. Returns false, and writes nothing, if its heartbeat is no longer `observed`.
  bool evict(kv::Transaction& tx, const Heartbeat& observed);

 private:
  void clear_rows(kv::Transaction& tx, std::string_view role, std::string_view id);
  void raise_version(kv::Transaction& tx, std::string_view role);
  kv::Versionstamp version(kv::Transaction& tx, std::string_view role);

  Rng& rng_;
  std::vector<RemovalHook> hooks_;
};

}  // namespace divan::workers
