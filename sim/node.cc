// A node of a server with databases: its clients write documents, and read changes and the updates feed; it
// runs the sequencer, ken and builders.
#include <fmt/core.h>

#include "divan/docs/database_settings.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/index/builder.h"
#include "divan/index/triggers/state.h"
#include "divan/index/triggers/trigger_kind.h"
#include "divan/index/unused.h"
#include "divan/ken/ken.h"
#include "divan/updates/sequencer.h"
#include "sim/cluster.h"
#include "sim/replications.h"

namespace divan::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kRetry = seconds(5);

class Node {
 public:
  Node(Cluster& cluster, Process& process)
      : base_(cluster, process),
        world_(cluster.world),
        rng_(world_.rng()),
        clock_(*process.clock),
        catalog_(bus_, clock_),
        // An embedded store has no events of other nodes.
        sequencer_(base_.store, catalog_, clock_, {}, cluster.plan.embedded ? "" : process.name),
        follower_(base_.store, bus_, clock_, process.name),
        ken_(base_.store, catalog_, base_.queue, kinds_, clock_, *process.rng, config_),
        monitor_(base_.store, base_.registry, clock_, *process.rng),
        builder_(base_.store, catalog_, base_.queue, monitor_, kinds_, clock_,
                 {.batch_documents = cluster.plan.batch, .batches_ahead = 1}),
        acceptor_(base_.queue, base_.store, clock_),
        replications_(base_, catalog_),
        heard_(bus_.subscribe(events::all_databases_channel(), {.notify = [this] { has_heard_ = true; }})) {
    auto mapper = std::make_unique<MapperKind>(world_, cluster.plan.longest_map,
                                               [&cluster] { return cluster.token(); });
    mapper_ = mapper.get();
    kinds_.push_back(std::move(mapper));
    kinds_.push_back(
        std::make_shared<index::triggers::TriggerKind>(index::triggers::Jobs{base_.queue}, pool_));
    catalog_.on_design_winner(index::triggers::update_triggers);
  }

  // In the last task of this incarnation, which cannot be unwound here.
  ~Node() {
    if (worker_ == nullptr || world_.is_unwinding()) return;
    base_.cluster.workers.expect_removal(worker_->ref().incarnation);
    worker_.reset();
  }

  void write();
  void read_changes();
  void read_feed();
  void sequence();
  void follow();
  void listen();
  void decide();
  void build();
  void run_replications();
  void watch_workers();
  void leave();

 private:
  bool goes_on() const { return !leaving_ && !world_.is_unwinding(); }
  void sleep(
      Duration longest, const std::function<bool()>& woken = [] { return false; }) {
    world_.wait(nullptr, world_.now() + longest, [&] { return leaving_ || woken(); });
  }
  std::string any_database() { return std::string(kDatabases[rng_.below(std::size(kDatabases))]); }
  std::string any_id() { return fmt::format("doc{}", rng_.below(base_.cluster.plan.documents)); }
  std::string any_body() { return fmt::format(R"({{"k":{},"n":{}}})", rng_.below(5), ++made_); }

  void perform(const std::string& what, const std::function<bool(kv::Transaction&, const std::string&)>& fn);
  bool exists(const std::string& database);
  void create(const std::string& name);
  void remove(const std::string& name);
  void create_or_delete();
  void edit(const std::string& database);
  void replicate();
  void write_design(const std::string& database);
  void redefine();
  void change_settings(const std::string& database);
  void clean_up(const std::string& database);
  void write_burst();
  docs::RevTree tree_of(const std::string& database, const std::string& id);
  void read_changes_of(const std::string& name);
  void read_feed_once();

  Base base_;
  World& world_;
  Rng& rng_;
  const Clock& clock_;
  events::Bus bus_;
  docs::Catalog catalog_;
  updates::Sequencer sequencer_;
  updates::Follower follower_;
  index::Kinds kinds_;
  MapperKind* mapper_;         // one of them
  js::Pool pool_{{}, clock_};  // of the triggers, which have no functions
  Config config_;
  ken::Ken ken_;
  workers::Monitor monitor_;
  index::Builder builder_;
  jobs::Acceptor acceptor_;
  ReplicationTasks replications_;
  std::unique_ptr<workers::LocalWorker> worker_;
  std::atomic<bool> has_heard_ = false;
  bool ken_woken_ = false;
  events::Subscription heard_;
  int made_ = 0;
  bool leaving_ = false;
};

// Runs `fn` in a transaction and compares the result with what was committed. `fn` returns true if it has
// written and recorded something.
void Node::perform(const std::string& what,
                   const std::function<bool(kv::Transaction&, const std::string&)>& fn) {
  const std::string token = base_.cluster.token();
  std::optional<bool> result;
  std::string answer;
  try {
    result = base_.store.run([&](kv::Transaction& tx) { return fn(tx, token); });
    answer = *result ? "done" : "refused";
  } catch (const kv::Error& error) {
    answer = error.name();
    base_.check_expected(error);
  } catch (const Error& error) {
    answer = error.name();
    result = false;
  }
  world_.trace(fmt::format("{} ({}): {}", what, token, answer));
  world_.count(fmt::format("{}: {}", what.substr(0, what.find(' ')), result ? answer : "unknown"));
  if (!world_.is_unwinding()) base_.cluster.databases.compare(token, result);
}

bool Node::exists(const std::string& database) {
  return base_.store.run([&](kv::Transaction& tx) { return catalog_.find(tx, database).has_value(); });
}

void Node::create(const std::string& name) {
  perform("create " + name, [&](kv::Transaction& tx, const std::string& token) {
    const auto database = catalog_.create(tx, name);
    note(tx, Lifecycle{token, database.number(), name, true});
    return true;
  });
}

void Node::remove(const std::string& name) {
  perform("delete " + name, [&](kv::Transaction& tx, const std::string& token) {
    const auto number = catalog_.open(tx, name).number();
    catalog_.remove(tx, name);
    note(tx, Lifecycle{token, number, name, false});
    return true;
  });
}

void Node::create_or_delete() {
  const std::string name = any_database();
  if (!exists(name)) {
    create(name);
  } else if (rng_.below(6) == 0) {
    // So that the sequencer may be working on the edit when the database is deleted.
    if (rng_.below(2) == 0) edit(name);
    remove(name);
  }
}

docs::RevTree Node::tree_of(const std::string& name, const std::string& id) {
  return base_.store.run([&](kv::Transaction& tx) {
    const auto database = catalog_.find(tx, name);
    return database ? docs::read_tree(tx, *database, id, kv::Isolation::snapshot) : docs::RevTree();
  });
}

// Edits some documents in one transaction, after a read of each in another.
void Node::edit(const std::string& name) {
  std::map<std::string, docs::IncomingDocument> documents;
  for (std::uint64_t i = 1 + rng_.below(3); i > 0; --i) {
    docs::IncomingDocument document;
    document.id = any_id();
    const auto tree = tree_of(name, document.id);
    if (!tree.empty() && !tree.front().deleted) {
      const auto& leaf = rng_.below(4) == 0 ? tree[rng_.below(tree.size())] : tree.front();
      document.revision = leaf.revision();
      document.deleted = rng_.below(5) == 0;
    }
    document.body = document.deleted ? "{}" : any_body();
    documents[document.id] = std::move(document);
  }
  if (rng_.below(2) == 0) world_.pause(base_.pause_up_to(milliseconds(50)));
  perform(fmt::format("edit {}/{}", name, documents.begin()->first),
          [&](kv::Transaction& tx, const std::string& token) {
            const auto database = catalog_.open(tx, name);
            docs::Writer writer(tx, database);
            bool written = false;
            for (const auto& [id, document] : documents) {
              const auto result = writer.edit(document);
              if (result.error) continue;
              written = true;
              note(tx, Edit{token, database.number(), id, result.revision, document.revision, false,
                            document.deleted, document.body});
            }
            writer.finish();
            return written;
          });
}

// A replicated revision: the first of another branch, or an edit of a revision that may have been edited
// here.
void Node::replicate() {
  const std::string name = any_database();
  docs::IncomingDocument document;
  document.id = any_id();
  const auto tree = tree_of(name, document.id);
  docs::RevisionPath path{1, {docs::Revision::parse_id(fmt::format("{:032x}", rng_.next()))}};
  std::optional<docs::Revision> parent;
  if (!tree.empty() && rng_.below(3) > 0) {
    const auto& known = tree[rng_.below(tree.size())].path;
    const std::size_t back = rng_.below(std::min<std::size_t>(known.ids.size(), 3));
    parent = docs::Revision{known.generation - static_cast<std::uint32_t>(back), known.ids[back]};
    path.generation = parent->generation + 1;
    path.ids.push_back(parent->id);
  }
  document.revision = path.revision();
  document.deleted = rng_.below(5) == 0;
  document.body = document.deleted ? "{}" : any_body();
  document.revisions = path;
  perform(fmt::format("replicate {}/{}", name, document.id),
          [&](kv::Transaction& tx, const std::string& token) {
            const auto database = catalog_.open(tx, name);
            docs::Writer writer(tx, database);
            writer.replicate(document.id, {&document, 1});
            writer.finish();
            note(tx, Edit{token, database.number(), document.id, path.revision(), parent, true,
                          document.deleted, document.body});
            return true;
          });
}

void Node::write_design(const std::string& name) {
  docs::IncomingDocument document;
  document.id = fmt::format("_design/d{}", rng_.below(2));
  const auto tree = tree_of(name, document.id);
  if (!tree.empty() && !tree.front().deleted) {
    document.revision = tree.front().revision();
    document.deleted = rng_.below(4) == 0;
  }
  document.body = document.deleted ? "{}" : design_body(static_cast<int>(rng_.below(kFunctions)));
  perform(fmt::format("design {}/{}", name, document.id), [&](kv::Transaction& tx, const std::string& token) {
    const auto database = catalog_.open(tx, name);
    docs::Writer writer(tx, database);
    const auto result = writer.edit(document);
    if (result.error) return false;
    writer.finish();
    note(tx, Edit{token, database.number(), document.id, result.revision, document.revision, false,
                  document.deleted, document.body});
    return true;
  });
}

// Removes an index that may be being built, and may define it again.
void Node::redefine() {
  const std::string name = any_database();
  write_design(name);
  clean_up(name);
  if (rng_.below(2) == 0) write_design(name);
}

// Reads only the record of the database. A deletion must conflict with that.
void Node::change_settings(const std::string& name) {
  try {
    base_.store.run([&](kv::Transaction& tx) {
      docs::write_config(tx, catalog_.open(tx, name), "security", any_body());
    });
    world_.count("settings changed");
  } catch (const kv::Error& error) { base_.check_expected(error); } catch (const Error& error) {
    base_.check_is("not_found", error);
  }
}

void Node::clean_up(const std::string& name) {
  try {
    const auto removed = base_.store.run([&](kv::Transaction& tx) {
      const auto database = catalog_.find(tx, name);
      return database ? index::remove_unused(tx, *database, kinds_) : 0;
    });
    world_.count("indexes removed by a clean-up", static_cast<std::int64_t>(removed));
  } catch (const kv::Error& error) { base_.check_expected(error); }
}

// Each write overlaps the builds of the one before, the sequencer, and the writes of other nodes.
void Node::write_burst() {
  const Duration longest = milliseconds(rng_.below(2) == 0 ? 60 : 400);
  for (auto edits = 1 + rng_.below(4); edits > 0; --edits) {
    sleep(base_.pause_up_to(longest));
    const std::string name = any_database();
    const auto operation = rng_.below(12);
    if (!exists(name)) {
      create(name);
    } else if (operation == 0) {
      remove(name);
    } else if (operation < 3) {
      change_settings(name);
    } else if (operation < 5) {
      write_design(name);
    } else {
      edit(name);
    }
  }
}

void Node::write() {
  while (goes_on() && !base_.cluster.quiet) {
    sleep(base_.pause_up_to(base_.cluster.plan.writer_pause));
    if (!goes_on() || base_.cluster.quiet) break;
    try {
      const auto operation = rng_.below(100);
      if (operation < 12) {
        create_or_delete();
      } else if (operation < 70) {
        edit(any_database());
      } else if (operation < 87) {
        replicate();
      } else if (operation < 92) {
        write_design(any_database());
      } else if (operation < 96) {
        redefine();
      } else if (operation < 98 && base_.cluster.plan.replications) {
        replications_.recreate_target();
      } else {
        change_settings(any_database());
      }
    } catch (const kv::Error& error) { base_.check_expected(error); }
  }
  for (int bursts = base_.cluster.bursts; goes_on(); bursts = base_.cluster.bursts) {
    try {
      world_.wait(nullptr, MonotonicTime::max(), [&] { return leaving_ || base_.cluster.bursts != bursts; });
      if (goes_on()) write_burst();
    } catch (const kv::Error& error) { base_.check_expected(error); }
  }
}

// Reads pages of the changes up to their end. The state after a page is kept over crashes, or that after a
// later one.
void Node::read_changes_of(const std::string& name) {
  auto& kept = base_.cluster.readers[{base_.process.name, name}];
  ChangesReader reader = kept;
  for (;;) {
    ChangesReader next;
    bool at_end = false;
    kv::Version version = 0;
    std::vector<docs::Change> changes;
    std::vector<std::string> bodies;
    const std::size_t limit = 1 + rng_.below(5);
    const bool with_bodies = rng_.below(3) == 0;
    base_.store.run([&](kv::Transaction& tx) {
      next = reader;
      changes.clear();
      version = tx.read_version();
      const auto database = catalog_.find(tx, name);
      const std::int64_t number = database ? database->number() : ChangesReader::kNone;
      if (number != reader.database) next = {.database = number};
      at_end = true;
      if (!database) return;
      docs::visit_changes(tx, *database, next.since, [&](const docs::Change& change) {
        changes.push_back(change);
        at_end = changes.size() < limit;
        return at_end;
      });
      if (with_bodies) bodies = docs::read_bodies(tx, *database, changes);
    });
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const auto& change = changes[i];
      if (change.sequence <= next.since)
        world_.fail(fmt::format("The changes of {} are not in order.", name));
      next.since = change.sequence;
      next.documents[change.id] = {change.sequence, change.winner, change.deleted};
      if (with_bodies) base_.cluster.databases.check_body(next.database, change, bodies[i]);
    }
    world_.count("changes read", static_cast<std::int64_t>(changes.size()));
    reader = std::move(next);
    if (at_end) base_.cluster.databases.check_reader(reader, name, version);
    if (rng_.below(2) == 0 || base_.cluster.quiet) kept = reader;
    if (at_end) return;
  }
}

void Node::read_changes() {
  std::atomic<bool> woken = true;
  const auto subscription =
      bus_.subscribe(events::all_databases_channel(), {.max_events = 0, .notify = [&] { woken = true; }});
  while (goes_on()) {
    woken = false;
    try {
      for (const auto name : kDatabases) read_changes_of(std::string(name));
    } catch (const kv::Error& error) { base_.check_expected(error); }
    sleep(seconds(10), [&] { return woken.load(); });
  }
}

void Node::read_feed_once() {
  auto& kept = base_.cluster.feed_readers[base_.process.name];
  FeedReader reader;
  base_.store.run([&](kv::Transaction& tx) {
    reader = kept;
    updates::visit_updates(tx, reader.since, [&](const updates::Update& update) {
      if (update.sequence <= reader.since) world_.fail("The updates feed is not in order.");
      reader.since = update.sequence;
      reader.rows[{update.database, update.kind}] = update.sequence;
      return true;
    });
  });
  if (reader.since == kept.since) return;
  world_.count("reads of the updates feed with news");
  kept = std::move(reader);
}

void Node::read_feed() {
  while (goes_on()) {
    try {
      read_feed_once();
    } catch (const kv::Error& error) { base_.check_expected(error); }
    sleep(base_.pause_up_to(seconds(base_.cluster.quiet ? 1 : 6)));
  }
}

// As the sequencer's thread does.
void Node::sequence() {
  while (goes_on()) {
    try {
      world_.count("updates turned into rows of the feed", static_cast<std::int64_t>(sequencer_.step()));
    } catch (const kv::Error& error) {
      base_.check_expected(error);
      sleep(kRetry);
      continue;
    }
    sleep(milliseconds(50));
    sleep(seconds(60), [this] { return sequencer_.stats().unseen > 0; });
  }
}

void Node::follow() {
  for (bool begun = false; goes_on() && !begun;) {
    try {
      follower_.begin();
      begun = true;
    } catch (const kv::Error& error) { base_.check_expected(error); }
  }
  while (goes_on()) {
    follower_.notifier().clear();
    const MonotonicTime next = follower_.step();
    sleep(next == MonotonicTime::max() ? Duration(seconds(60)) : next - clock_.now(),
          [this] { return follower_.notifier().notified(); });
  }
}

// As ken's listener does, also while ken inspects a database.
void Node::listen() {
  while (goes_on()) {
    has_heard_ = false;
    while (const auto message = heard_.try_next()) {
      if (message->event) ken_.handle(*message->event);
      if (!message->event) ken_.add_all();
      ken_woken_ = true;
    }
    sleep(seconds(60), [this] { return has_heard_.load(); });
  }
}

// As ken's thread does.
void Node::decide() {
  ken_.add_all();
  while (goes_on()) {
    ken_woken_ = false;
    if (!ken_.step()) sleep(milliseconds(500), [this] { return ken_woken_; });
  }
}

void Node::build() {
  const std::vector<std::string> types{"views", "triggers"};
  while (goes_on()) {
    jobs::AcceptOptions options;
    // A job without a worker is reclaimed if a batch takes longer than its timeout.
    const bool for_worker = rng_.below(4) > 0 || base_.cluster.quiet;
    if (worker_ != nullptr && for_worker) options.worker = worker_->ref();
    if (options.worker) options.worker->incarnation.clear();
    std::vector<jobs::AcceptedJob> accepted;
    try {
      accepted = acceptor_.accept(types, options, clock_.now() + between(rng_, seconds(1), seconds(20)));
    } catch (const kv::Error& error) { base_.check_expected(error); } catch (const Error& error) {
      base_.check_is("not_found", error);
      sleep(milliseconds(100));
    }
    for (const auto& job : accepted) {
      world_.trace(fmt::format("builds {} {}", job.job.id, job.job.lock));
      world_.count("builds");
      mapper_->set_building(&job);
      builder_.run(job);
      mapper_->set_building(nullptr);
    }
  }
}

void Node::run_replications() {
  replications_.work([this] { return worker_.get(); });
}

void Node::watch_workers() {
  while (goes_on() && worker_ == nullptr) {
    try {
      worker_ =
          monitor_.add(index::kBackgroundRole, base_.process.name, "{}", base_.cluster.plan.worker_timeout);
    } catch (const kv::Error& error) { base_.check_expected(error); }
  }
  while (goes_on()) {
    const MonotonicTime next = monitor_.step();
    sleep(std::max(Duration(), next - clock_.now()), [this] { return monitor_.woken(); });
  }
}

void Node::leave() {
  base_.wait_to_leave();
  leaving_ = true;
  builder_.stop();
  acceptor_.interrupt();
  replications_.leave();
}

}  // namespace

void start_node(Cluster& cluster, Process& process) {
  auto node = std::make_shared<Node>(cluster, process);
  const auto spawn = [&](const std::string& name, void (Node::*task)()) {
    cluster.world.spawn(&process, name, [node, task] { (node.get()->*task)(); });
  };
  for (std::size_t i = 0; i < cluster.plan.writers; ++i) spawn(fmt::format("writer{}", i), &Node::write);
  spawn("reader", &Node::read_changes);
  spawn("feed", &Node::read_feed);
  spawn("sequencer", &Node::sequence);
  if (!cluster.plan.embedded) spawn("follower", &Node::follow);
  spawn("listener", &Node::listen);
  spawn("ken", &Node::decide);
  for (std::size_t i = 0; i < cluster.plan.builders; ++i) spawn(fmt::format("builder{}", i), &Node::build);
  if (cluster.plan.replications) {
    // One for each: none waits for another one to end.
    for (std::size_t i = 0; i < std::size(kReplications); ++i)
      spawn(fmt::format("replication{}", i), &Node::run_replications);
  }
  spawn("workers", &Node::watch_workers);
  spawn("leaver", &Node::leave);
}

}  // namespace divan::sim
