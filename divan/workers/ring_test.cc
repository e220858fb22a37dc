#include "divan/workers/ring.h"

#include <gtest/gtest.h>

#include <fmt/core.h>

#include <algorithm>

#include "divan/kv/counting_testing.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/workers/observer.h"

namespace divan::workers {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Registry::Roster roster_of(int nodes) {
  auto members = std::make_shared<Registry::RoleRoster>();
  for (int i = 0; i < nodes; ++i) members->workers[fmt::format("node{}", i)] = {"incarnation", seconds(15)};
  Registry::Roster roster;
  roster.roles.emplace(kNodeRole, members);
  return roster;
}

std::vector<int> observers(const Ring& ring, int nodes, std::string_view role, std::string_view id) {
  std::vector<int> found;
  for (int i = 0; i < nodes; ++i) {
    if (ring.observes(fmt::format("node{}", i), role, id)) found.push_back(i);
  }
  return found;
}

TEST(Rings, EveryWorkerHasTwoObserversAndNoNodeIsItsOwn) {
  for (const int nodes : {1, 2, 3, 10, 100}) {
    const Ring ring(roster_of(nodes));
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(observers(ring, nodes, "role", fmt::format("w{}", i)).size(),
                std::min<std::size_t>(2, static_cast<std::size_t>(nodes)));
    }
    for (int i = 0; i < nodes; ++i) {
      const auto found = observers(ring, nodes, kNodeRole, fmt::format("node{}", i));
      EXPECT_EQ(found.size(), std::min<std::size_t>(2, static_cast<std::size_t>(nodes - 1)));
      EXPECT_EQ(std::count(found.begin(), found.end(), i), 0);
    }
  }
}

TEST(Rings, WhenANodeLeavesOnlyItsNeighboursObserveMoreWorkers) {
  constexpr int kNodes = 20, kWorkers = 4000;
  const Ring all(roster_of(kNodes)), without_last(roster_of(kNodes - 1));
  std::map<int, int> shares;
  int moved = 0;
  for (int i = 0; i < kWorkers; ++i) {
    const std::string id = fmt::format("w{}", i);
    const auto before = observers(all, kNodes, "role", id);
    for (const int node : before) ++shares[node];
    const bool had_last = before.back() == kNodes - 1;
    const bool same = before == observers(without_last, kNodes, "role", id);
    EXPECT_NE(had_last, same) << id;
    moved += !same;
  }
  EXPECT_EQ(shares.size(), static_cast<std::size_t>(kNodes));
  EXPECT_LT(moved, kWorkers / 2);
}

// Nodes with an observer each, on one store.
struct Cluster : testing::Test {
  struct Node {
    Node(kv::Database& the_store, Registry& registry, const Clock& clock)
        : store(the_store), observer(store, registry, clock) {}
    kv::testing::CountingStore store;
    Observer observer;
    WorkerRef ref;
    bool alive = true;
  };
  ManualClock clock;
  kv::embedded::TemporaryStore store{&clock};
  SeededRng rng{1};
  Registry registry{rng};
  std::vector<std::unique_ptr<Node>> nodes;
  MonotonicTime next_beat = clock.now();
  bool observes_all = false;

  void start(int count) {
    for (int i = 0; i < count; ++i) {
      nodes.push_back(std::make_unique<Node>(*store, registry, clock));
      nodes.back()->ref = add(kNodeRole, fmt::format("node{}", i));
    }
  }
  WorkerRef add(std::string_view role, std::string_view id) {
    return store->run([&](kv::Transaction& tx) { return registry.add(tx, role, id, "{}", seconds(15)); });
  }
  bool is_alive(const WorkerRef& ref) {
    return store->run([&](kv::Transaction& tx) { return registry.is_alive(tx, ref); });
  }
  void pass(Duration duration) {
    for (const auto end = clock.now() + duration; clock.now() < end; clock.advance(milliseconds(100))) {
      if (clock.now() >= next_beat) {
        store->run([&](kv::Transaction& tx) {
          for (const auto& node : nodes) {
            if (node->alive) registry.heartbeat(tx, node->ref);
          }
        });
        next_beat += seconds(5);
      }
      for (const auto& node : nodes) {
        if (!node->alive || !node->observer.due()) continue;
        // Without its node a process observes all workers closely.
        node->observer.poll(observes_all ? std::set<WorkerRef>() : std::set{node->ref}, [] {});
      }
    }
  }
  // How many rows the nodes read in a second.
  double rows_read(Duration during) {
    for (const auto& node : nodes) node->store.rows_read = 0;
    pass(during);
    double rows = 0;
    for (const auto& node : nodes) rows += node->store.rows_read;
    return rows / std::chrono::duration<double>(during).count();
  }
};

TEST_F(Cluster, ADeadNodeIsEvictedSoonAfterItsTimeout) {
  start(10);
  pass(seconds(20));
  nodes[3]->alive = false;
  pass(seconds(14));  // its last heartbeat was up to 5 s ago; it was read every half second
  pass(milliseconds(1600));
  EXPECT_FALSE(is_alive(nodes[3]->ref));
  for (const auto& node : nodes) EXPECT_EQ(is_alive(node->ref), node->alive);
}

TEST_F(Cluster, WorkersWhoseObserversDiedTooAreEvictedWithinTwiceTheirTimeout) {
  start(10);
  std::vector<WorkerRef> workers;
  for (int i = 0; i < 20; ++i) workers.push_back(add("role", fmt::format("w{}", i)));
  pass(seconds(1));
  // All nodes except one stop, and the workers send no heartbeats.
  for (std::size_t i = 1; i < nodes.size(); ++i) nodes[i]->alive = false;
  pass(seconds(30));
  for (const auto& worker : workers) EXPECT_FALSE(is_alive(worker));
  for (const auto& node : nodes) EXPECT_EQ(is_alive(node->ref), node->alive);
}

// What 100 nodes read, if each observes all others closely, and if each observes its share.
TEST_F(Cluster, EachNodeReadsItsShareOfTheHeartbeats) {
  constexpr int kNodes = 100;
  start(kNodes);
  const auto measure = [&](bool all, std::size_t victim) {
    observes_all = all;
    pass(seconds(20));
    const double rows = rows_read(seconds(15));
    nodes[victim]->alive = false;
    const MonotonicTime died = next_beat - seconds(5);  // its last heartbeat
    while (is_alive(nodes[victim]->ref)) pass(milliseconds(100));
    const double noticed = std::chrono::duration<double>(clock.now() - died).count();
    fmt::print("{}: {:.0f} rows/s, a death is noticed {:.1f} s after the last heartbeat\n",
               all ? "all by all" : "by ring order", rows, noticed);
    EXPECT_LE(noticed, 15.7);
    return rows;
  };
  const double before = measure(true, 1), after = measure(false, 2);
  EXPECT_GT(before, 0.9 * 2 * kNodes * kNodes);
  // The version and the heartbeats of two others twice a second, and those of all others every 7.5 s; several
  // polls where these are not due together.
  EXPECT_LT(after, kNodes * (2 * 3 + kNodes / 7.5) * 1.5);
}

}  // namespace
}  // namespace divan::workers
