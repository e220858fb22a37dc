#include "divan/app/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "divan/kv/embedded/engine.h"
#include "divan/kv/fdb/engine.h"

namespace divan::app {
namespace {

constexpr const char* kCommitsDescription = "Transactions committed.";
constexpr const char* kConflictsDescription = "Transactions rejected because of a conflict.";

template <class Value>
double number(Value value) {
  return static_cast<double>(value);
}

// Returns a function that adds a metric for a member of `source.stats()`. `source` is kept by reference.
template <class Source>
auto stats_metrics(Metrics& metrics, const Source& source) {
  return [&metrics, &source](const char* name, const char* help, auto member) {
    metrics.measure(name, help, [&source, member] { return number(source.stats().*member); });
  };
}

void measure_embedded(Metrics& metrics, const kv::embedded::EmbeddedDatabase& store) {
  using Stats = kv::embedded::CommitStats;
  const auto add = stats_metrics(metrics, store);
  add("divan_store_commits_total", kCommitsDescription, &Stats::commits);
  add("divan_store_commit_groups_total", "Groups of commits, each one write of the log.", &Stats::groups);
  add("divan_store_conflicts_total", kConflictsDescription, &Stats::conflicts);
  add("divan_store_conflict_entries", "Keys stored for conflict checks.", &Stats::conflict_entries);
}

void measure_cluster(Metrics& metrics, const kv::fdb::FdbDatabase& store) {
  metrics.measure("divan_store_round_trips_total", "Round trips to the cluster; concurrent ones count once.",
                  [&store] { return number(store.round_trips()); });
  metrics.measure("divan_store_commits_total", kCommitsDescription,
                  [&store] { return number(store.commits()); });
  metrics.measure("divan_store_conflicts_total", kConflictsDescription,
                  [&store] { return number(store.conflicts()); });
}

}  // namespace

void measure_store(Metrics& metrics, const OpenStore& store) {
  if (store.embedded != nullptr) measure_embedded(metrics, *store.embedded);
  if (store.fdb != nullptr) measure_cluster(metrics, *store.fdb);
}

void measure_passwords(Metrics& metrics, const api::Accounts& accounts) {
  using Stats = api::PasswordCheckStats;
  const auto add = stats_metrics(metrics, accounts);
  metrics.measure("divan_password_checks_total", "Passwords compared with a hash.",
                  [&accounts] { return number(accounts.stats().right + accounts.stats().wrong); });
  add("divan_password_failures_total", "Compared passwords that were wrong.", &Stats::wrong);
  add("divan_password_refusals_total",
      "Requests whose passwords were not checked since too many were waiting.", &Stats::refused);
  add("divan_password_checks_waiting", "Passwords waiting to be compared.", &Stats::waiting);
}

void measure_js(Metrics& metrics, const js::Pool& pool) {
  using Stats = js::PoolStats;
  const auto add = stats_metrics(metrics, pool);
  add("divan_js_processes", "JavaScript processes.", &Stats::alive);
  add("divan_js_processes_died_total", "JavaScript processes that ended or were killed.", &Stats::died);
  add("divan_js_failures_total", "Calls of JavaScript functions that failed.", &Stats::failures);
  add("divan_js_documents_total", "Documents mapped.", &Stats::documents);
  metrics.measure("divan_js_busy_seconds_total", "Time during which JavaScript processes were busy.",
                  [&pool] { return std::chrono::duration<double>(pool.stats().busy_time).count(); });
}

void measure_events(Metrics& metrics, const events::Bus& bus) {
  using Stats = events::BusStats;
  const auto add = stats_metrics(metrics, bus);
  add("divan_events_published_total", "Events published to at least one subscriber.", &Stats::published);
  add("divan_events_delivered_total", "Deliveries of events to subscribers.", &Stats::delivered);
  add("divan_events_lagged_total", "Events missed by slow subscribers.", &Stats::lagged);
  add("divan_events_channels", "Channels with subscribers.", &Stats::channels);
  add("divan_events_subscribers", "Subscriptions to channels.", &Stats::subscribers);
}

// The names are those of CouchDB's global_changes; docs/feeds.md describes what they count here.
void measure_updates(Metrics& metrics, const updates::Sequencer& sequencer) {
  using Stats = updates::SequencerStats;
  const auto add = stats_metrics(metrics, sequencer);
  add("divan_global_changes_db_writes_total", "Rows written to the updates feed.", &Stats::rows);
  add("divan_global_changes_server_pending_updates", "Marks of updates that were read and are not rows yet.",
      &Stats::pending);
  add("divan_global_changes_listener_pending_updates", "Commits whose marks were not read yet.",
      &Stats::unseen);
  add("divan_global_changes_rpcs_total", "Transactions of the updates feed.", &Stats::transactions);
  add("divan_global_changes_conflicts_total", "Transactions of the updates feed that were retried.",
      &Stats::conflicts);
  add("divan_global_changes_failures_total", "Failures after which the updates feed paused.",
      &Stats::failures);
  // The rows of the feed are not documents, so they have no conflicting revisions.
  metrics.counter("divan_global_changes_event_doc_conflict_total", "Always 0: rows have no revisions.");
}

void measure_jobs(Metrics& metrics, kv::Database& store, jobs::Queue& queue) {
  metrics.on_collect([&] {
    store.run([&](kv::Transaction& tx) {
      for (const auto& type : queue.types(tx)) {
        for (const auto& [state, count] : queue.counts(tx, type)) {
          metrics
              .gauge("divan_jobs", "Jobs by type and state.",
                     {{"type", type}, {"state", std::string(jobs::state_name(state))}})
              .Set(number(count));
        }
      }
    });
  });
}

}  // namespace divan::app
