// Membership: who works, in which role. All of it is in the store, so every process sees the same.
//
// A worker is a row and a heartbeat, a counter that its owner moves on. Whoever observes that a counter
// stands still for the worker's timeout (on the observer's own clock: worker and observer need not agree on
// the time) evicts the worker. Every registration has an incarnation of its own, so that what an evicted
// worker still sends, or an earlier one of the same name, is told from what the present one sends.
//
// A registration may be held by a connection, whose end ends it at once. That tells of processes that die;
// heartbeats, which the worker itself sends, tell of those that are frozen or cut off.
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

/// The role of the server processes themselves. A node's options say where it is and what it does: `address`
/// (its URL; null if it listens nowhere), `serves` (false: background work only), `version`, `started`
/// (milliseconds since 1970) and `background` (the kinds of work).
inline constexpr std::string_view kNodeRole = "_node";

/// A registration: what proves that one is this worker.
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

/// A connection's right to end a registration. The one that comes later takes it from the one before.
struct Hold {
  WorkerRef ref;
  std::string token;
};

/// What has become of a hold.
enum class HoldState { holds, taken, ended };

/// Called in the transaction in which a worker stops being one: evicted, replaced or unregistered.
using RemovalHook = std::function<void(kv::Transaction&, std::string_view role, std::string_view id)>;

/// The membership's rules over the store. Thread-safe, but for the registration of hooks, which is for
/// start-up.
class Registry {
 public:
  explicit Registry(Rng& rng) : rng_(rng) {}

  void on_removal(RemovalHook hook) { hooks_.push_back(std::move(hook)); }

  /// Registers a worker, row and heartbeat at once. With the `incarnation` of a registration that still
  /// holds, that one is kept (its options and timeout are set anew, and its heartbeat moves on); otherwise a
  /// worker of the same name is replaced. Throws bad_request for names, timeouts or options beyond the
  /// limits.
  WorkerRef add(kv::Transaction& tx, std::string_view role, std::string_view id, std::string_view options,
                Duration timeout = kDefaultTimeout, std::string_view incarnation = {});

  /// Removes it; throws not_found if the registration does not hold any more.
  void remove(kv::Transaction& tx, const WorkerRef& ref);

  /// Removes whoever is registered under the name, if anybody.
  void remove_any(kv::Transaction& tx, std::string_view role, std::string_view id);

  /// Moves the heartbeat on. False if the registration does not hold any more: then nothing is written.
  bool heartbeat(kv::Transaction& tx, const WorkerRef& ref);

  /// Tells how busy a worker is, a JSON object, in the transaction of a heartbeat of its.
  void set_load(kv::Transaction& tx, const WorkerRef& ref, std::string_view load);
  /// By id, of those workers of a role that tell. As a snapshot: it changes with each heartbeat.
  std::map<std::string, std::string> loads(kv::Transaction& tx, std::string_view role);

  /// Lets a connection hold a registration that this transaction knows to be there.
  Hold hold(kv::Transaction& tx, const WorkerRef& ref);
  HoldState state(kv::Transaction& tx, const Hold& hold);
  /// A watch on the hold: it fires at the latest when the hold is taken or the registration ends. It is null
  /// if the store has too many watches, as are those below (Transaction::try_watch).
  std::shared_ptr<kv::Watch> watch(kv::Transaction& tx, const Hold& hold);
  /// Whether a connection holds the registration. As a snapshot.
  bool is_held(kv::Transaction& tx, std::string_view role, std::string_view id);
  /// The connection has ended: so does the registration, if it is still held by it.
  void release(kv::Transaction& tx, const Hold& hold);

  /// Whether the registration holds. The transaction conflicts with its end.
  bool is_alive(kv::Transaction& tx, const WorkerRef& ref);

  /// The present incarnation of a worker, or nothing. The transaction conflicts with its end.
  std::optional<WorkerRef> find(kv::Transaction& tx, std::string_view role, std::string_view id);
  /// What find() reads, for Transaction::prefetch().
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
  /// Brings a roster that an earlier call left up to date. Reads one row if no membership has changed, and
  /// the rows of those roles that have.
  void refresh(kv::Transaction& tx, Roster& roster);

  /// Removes what is left of a role without workers: earlier versions of this program kept a row of it.
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
  /// Of the workers that are named, in any order, without those that have none. As a snapshot. `names` are
  /// sorted.
  std::vector<Heartbeat> heartbeats(kv::Transaction& tx, std::span<const Name> names, const Roster& roster);

  /// Removes a worker whose heartbeat still is what was observed; false if it has moved or is gone.
  bool evict(kv::Transaction& tx, const Heartbeat& observed);

 private:
  void clear_rows(kv::Transaction& tx, std::string_view role, std::string_view id);
  void raise_version(kv::Transaction& tx, std::string_view role);
  kv::Versionstamp version(kv::Transaction& tx, std::string_view role);

  Rng& rng_;
  std::vector<RemovalHook> hooks_;
};

}  // namespace divan::workers
