#include "sim/replications.h"

#include <fmt/core.h>

#include <type_traits>

#include "divan/docs/catalog.h"
#include "divan/docs/changes.h"
#include "divan/docs/reader.h"
#include "sim/attempt_note.h"

namespace divan::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// As the replicator's: how long a replication works, and how often its job is read.
constexpr Duration kTurn = seconds(2);
constexpr Duration kLookInterval = seconds(5);
constexpr Duration kSlowestRequest = milliseconds(100);

// Records the attempt in each transaction that writes to a database.
class NotingTransaction final : public kv::ForwardingTransaction {
 public:
  NotingTransaction(std::unique_ptr<kv::Transaction> inner, AttemptNote attempt, Cluster& cluster)
      : ForwardingTransaction(std::move(inner)), attempt_(std::move(attempt)), cluster_(cluster) {}

  void set(std::string_view key, std::string_view value) override {
    notice(key);
    ForwardingTransaction::set(key, value);
  }
  void set_versionstamped_key(std::string_view key, std::string_view value) override {
    notice(key);
    ForwardingTransaction::set_versionstamped_key(key, value);
  }

 protected:
  std::string do_commit() override {
    if (writes_) note(inner(), attempt_, cluster_.token());
    return ForwardingTransaction::do_commit();
  }
  void do_reset() override {
    ForwardingTransaction::do_reset();
    writes_ = false;
  }

 private:
  void notice(std::string_view key) { writes_ = writes_ || docs::database_number(key).has_value(); }

  const AttemptNote attempt_;
  Cluster& cluster_;
  bool writes_ = false;
};

class NotingDatabase final : public kv::ForwardingDatabase {
 public:
  NotingDatabase(kv::Database& inner, AttemptNote attempt, Cluster& cluster)
      : ForwardingDatabase(inner), attempt_(std::move(attempt)), cluster_(cluster) {}
  std::unique_ptr<kv::Transaction> begin() override {
    return std::make_unique<NotingTransaction>(inner().begin(), attempt_, cluster_);
  }

 private:
  const AttemptNote attempt_;
  Cluster& cluster_;
};

// A database of the other store: requests take time, and they and their responses are lost.
class DistantPeer final : public replicator::Peer {
 public:
  DistantPeer(Cluster& cluster, MonotonicTime& cut_off_until, std::unique_ptr<replicator::Peer> peer)
      : cluster_(cluster), world_(cluster.world), cut_off_until_(cut_off_until), peer_(std::move(peer)) {}

  void create(std::string_view params) override {
    exchange([&] { peer_->create(params); });
  }
  std::string update_sequence() override {
    return exchange([&] { return peer_->update_sequence(); });
  }
  std::optional<replicator::StoredCheckpoint> read_checkpoint(std::string_view id) override {
    return exchange([&] { return peer_->read_checkpoint(id); });
  }
  std::string write_checkpoint(std::string_view id, const std::optional<std::string>& revision,
                               std::string_view body) override {
    return exchange([&] { return peer_->write_checkpoint(id, revision, body); });
  }
  replicator::ChangesPage changes(const std::string& since, std::size_t limit,
                                  const replicator::Replication& replication) override {
    return exchange([&] { return peer_->changes(since, limit, replication); });
  }
  std::unique_ptr<replicator::PeerWatch> watch_changes(const std::string& since,
                                                       const replicator::Replication& replication,
                                                       std::function<void()> wake) override {
    return peer_->watch_changes(since, replication, std::move(wake));
  }
  std::vector<replicator::MissingRevisions> missing(
      std::span<const replicator::ChangedDocument> documents) override {
    return exchange([&] { return peer_->missing(documents); });
  }
  replicator::ReadDocuments read(std::span<const replicator::MissingRevisions> wanted) override {
    return exchange([&] { return peer_->read(wanted); });
  }
  std::unique_ptr<replicator::ContentReader> open_content(
      const replicator::LargeDocument& document, const replicator::AttachmentContent& content) override {
    return exchange([&] { return peer_->open_content(document, content); });
  }
  std::size_t write(std::span<const std::string> documents) override {
    return exchange([&] { return peer_->write(documents); });
  }
  bool write_large(const replicator::LargeDocument& document, replicator::Peer& source) override {
    return exchange([&] { return peer_->write_large(document, source); });
  }

 private:
  template <class Call>
  std::invoke_result_t<Call> exchange(const Call& call) {
    send();
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
      send();
    } else {
      auto response = call();
      send();
      return response;
    }
  }

  // A request or a response.
  void send() {
    world_.pause(between(world_.rng(), {}, kSlowestRequest));
    if (happens(world_.rng(), cluster_.other.faults.connection_lost)) {
      cut_off_until_ = world_.now() + between(world_.rng(), {}, cluster_.other.faults.longest_outage);
      world_.count("fault: connection to the other store lost");
    }
    if (world_.now() < cut_off_until_ && !cluster_.quiet)
      throw Error(503, "connection_failed", "The other store cannot be reached.");
  }

  Cluster& cluster_;
  World& world_;
  MonotonicTime& cut_off_until_;
  const std::unique_ptr<replicator::Peer> peer_;
};

std::string json_of(const Replicated& replicated, Duration checkpoint_interval) {
  return fmt::format(
      R"({{"source":"{}","target":"{}","create_target":true,"continuous":true,"checkpoint_interval":{}}})",
      replicated.source, replicated.target,
      std::chrono::duration_cast<milliseconds>(checkpoint_interval).count());
}

// All leaves of a database, with the paths to them, and their bodies.
struct KnownLeaf {
  docs::RevisionPath path;
  bool deleted = false;
  std::string body;
};
using Leaves = std::map<std::string, std::vector<KnownLeaf>>;
std::optional<Leaves> leaves_of(Cluster& cluster, std::string_view name) {
  const bool is_other = name.starts_with(kOtherStore);
  events::Bus bus;
  docs::Catalog catalog(bus, cluster.true_clock);
  const auto tx = (is_other ? cluster.other : cluster.engine).database().begin();
  const auto database = catalog.find(*tx, std::string(name.substr(is_other ? kOtherStore.size() : 0)));
  if (!database) return std::nullopt;
  Leaves leaves;
  docs::visit_changes(*tx, *database, {}, [&](const docs::Change& change) {
    leaves[change.id];
    return true;
  });
  for (auto& [id, found] : leaves) {
    for (const auto& leaf : docs::read_tree(*tx, *database, id, kv::Isolation::snapshot))
      found.push_back({leaf.path, leaf.deleted, docs::read_body(*tx, *database, leaf)});
  }
  return leaves;
}

// Of a database of the nodes' writers; zero if it does not exist.
kv::Versionstamp last_sequence(Cluster& cluster, const std::string& name) {
  events::Bus bus;
  docs::Catalog catalog(bus, cluster.true_clock);
  const auto tx = cluster.engine.database().begin();
  const auto database = catalog.find(*tx, name);
  return database ? docs::last_sequence(*tx, *database) : kv::Versionstamp();
}

// A source that was deleted and created again may have got a revision that the target has with successors.
bool includes(const std::vector<KnownLeaf>& target, const KnownLeaf& leaf) {
  const auto revision = leaf.path.revision();
  return std::ranges::any_of(target, [&](const KnownLeaf& known) {
    if (known.path.revision() != revision) return known.path.contains(revision);
    return known.deleted == leaf.deleted && known.body == leaf.body;
  });
}

}  // namespace

void add_replications(jobs::Queue& queue, kv::Transaction& tx, Duration checkpoint_interval) {
  for (const auto& replicated : kReplications) {
    replicator::ReplicationJob job;
    job.json = json_of(replicated, checkpoint_interval);
    job.replication = replicator::Replication::parse(job.json);
    replicator::request_replication(queue, tx, job, "server");
  }
}

std::optional<std::string> missing_in_targets(Cluster& cluster) {
  for (const auto& [source, target] : kReplications) {
    const auto expected = leaves_of(cluster, source);
    if (!expected) continue;
    if (target.starts_with(kOtherStore) && last_sequence(cluster, "b") == cluster.other_created_after)
      continue;
    const auto found = leaves_of(cluster, target);
    if (!found) return fmt::format("{} was not created", target);
    for (const auto& [id, leaves] : *expected) {
      for (const auto& leaf : leaves) {
        const auto known = found->find(id);
        if (known == found->end() || !includes(known->second, leaf))
          return fmt::format("{} lacks {} {} of {}", target, id, leaf.path.revision().to_string(), source);
      }
    }
    cluster.world.count("targets that have what their sources have");
  }
  return std::nullopt;
}

ReplicationTasks::ReplicationTasks(Base& base, docs::Catalog& catalog)
    : base_(base),
      world_(base.world),
      clock_(*base.process.clock),
      catalog_(catalog),
      pool_({}, clock_),
      uploads_(base.store, catalog, clock_, *base.process.rng),
      acceptor_(base.queue, base.store, clock_),
      other_store_(base.cluster.other, base.process),
      other_catalog_(other_bus_, clock_),
      other_uploads_(other_store_, other_catalog_, clock_, *base.process.rng),
      other_{other_store_, other_catalog_, other_uploads_, pool_, clock_, true} {}

void ReplicationTasks::work(const std::function<const workers::LocalWorker*()>& worker) {
  const std::vector<std::string> types{std::string(replicator::kJobType)};
  while (goes_on()) {
    const auto* const registered = worker();
    if (registered == nullptr) {
      world_.pause(seconds(1));
      continue;
    }
    jobs::AcceptOptions options{.worker = registered->ref()};
    options.worker->incarnation.clear();
    std::vector<jobs::AcceptedJob> accepted;
    try {
      accepted = acceptor_.accept(types, options, clock_.now() + kLookInterval);
    } catch (const kv::Error& error) { base_.check_expected(error); } catch (const Error& error) {
      base_.check_is("not_found", error);
      world_.pause(milliseconds(100));
    }
    for (const auto& job : accepted) run(job);
  }
}

void ReplicationTasks::leave() {
  leaving_ = true;
  acceptor_.interrupt();
}

void ReplicationTasks::run(const jobs::AcceptedJob& job) {
  world_.count("attempts at replications");
  const auto woken = std::make_shared<std::atomic<bool>>();  // may be set after the run's end
  NotingDatabase store(base_.store, {job.job.type, job.job.id, job.job.lock}, base_.cluster);
  const replicator::LocalStore local{store, catalog_, uploads_, pool_, clock_, !base_.cluster.plan.embedded};
  const auto connect = [&](const replicator::Endpoint& endpoint, const auto&, const auto&) {
    return std::make_unique<DistantPeer>(
        base_.cluster, cut_off_until_,
        replicator::open_local(other_, endpoint.url.substr(kOtherStore.size()), {}, [](auto&) {}));
  };
  replicator::Run run({local, base_.queue, *base_.process.rng, acceptor_, connect}, job, {},
                      [woken] { *woken = true; });
  for (;;) {
    *woken = false;
    const auto turn = run.work(clock_.now() + kTurn);
    if (turn.state == replicator::Run::State::ended) return;
    if (turn.state == replicator::Run::State::ready) continue;
    const auto is_due = [&] { return leaving_ || *woken || clock_.now() >= turn.wake_at; };
    while (!is_due() && !run.interrupted()) {
      const Duration longest = std::min(turn.wake_at, clock_.now() + kLookInterval) - clock_.now();
      world_.wait(nullptr, world_.now() + longest, is_due);
      if (!has(job)) run.interrupt();
    }
    if (leaving_) run.interrupt();
  }
}

// As clients do.
void ReplicationTasks::recreate_target() {
  if (world_.rng().below(2) == 0) return recreate_other();
  const auto name = std::string(world_.rng().below(2) == 0 ? "copy-a" : "copy-b");
  try {
    base_.store.run([&](kv::Transaction& tx) { catalog_.remove(tx, name); });
    if (world_.rng().below(2) == 0) world_.pause(base_.pause_up_to(seconds(1)));
    base_.store.run([&](kv::Transaction& tx) { catalog_.create(tx, name); });
    world_.count("targets created again");
  } catch (const kv::Error& error) { base_.check_expected(error); } catch (const Error& error) {
    // It does not exist yet, or the replication has created it again.
    if (error.status() != 412) base_.check_is("not_found", error);
  }
}

// At once and without faults, so that it is known which changes of the source come later: only they let the
// replication notice it.
void ReplicationTasks::recreate_other() {
  const std::string name = "b";
  auto& store = base_.cluster.other.database();
  try {
    store.run([&](kv::Transaction& tx) { other_catalog_.remove(tx, name); });
  } catch (const Error&) { return; }
  store.run([&](kv::Transaction& tx) { other_catalog_.create(tx, name); });
  base_.cluster.other_created_after = last_sequence(base_.cluster, "b");
  world_.count("targets of the other store created again");
}

bool ReplicationTasks::has(const jobs::AcceptedJob& job) {
  try {
    return base_.store.run([&](kv::Transaction& tx) {
      const auto found = base_.queue.find(tx, job.job.type, job.job.id, kv::Isolation::snapshot);
      return found && found->lock == job.job.lock;
    });
  } catch (const kv::Error& error) {
    base_.check_expected(error);
    return true;
  }
}

}  // namespace divan::sim
