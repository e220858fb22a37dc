#include "divan/ken/lag.h"

#include <prometheus/gauge.h>

#include "divan/base/mutex.h"
#include "divan/docs/purge.h"
#include "divan/docs/reader.h"

namespace divan::ken {
namespace {

// How many indexes have their lag shown at a time, and how many have a time series of their own. All others
// share one.
constexpr std::size_t kMaxShown = 100;
constexpr std::size_t kMaxSeries = 500;
constexpr const char* kOthers = "_other";

// The lag of indexes that are being built or wait. A time series stays, at 0, when its index has caught up.
class Lag {
 public:
  Lag(Metrics& metrics, kv::Database& store, docs::Catalog& catalog)
      : metrics_(metrics), store_(store), catalog_(catalog) {}

  void show(const Status& status) {
    std::vector<const IndexName*> indexes;
    for (const auto& active : status.active) indexes.push_back(&active.index);
    for (const auto& waiting : status.waiting) indexes.push_back(&waiting.index);
    indexes.resize(std::min(indexes.size(), kMaxShown));
    std::map<Name, std::int64_t> lags;
    store_.run([&](kv::Transaction& tx) {
      lags.clear();
      for (const auto* index : indexes) lags[name_of(*index)] += changes_behind(tx, catalog_, *index);
    });
    std::lock_guard lock(mutex_);
    for (const auto& [name, lag] : lags) series_of(name).Set(static_cast<double>(lag));
    for (const auto& [name, gauge] : series_) {
      if (!lags.contains(name)) gauge->Set(0);
    }
  }

 private:
  using Name = std::pair<std::string, std::string>;  // database and design document

  Name name_of(const IndexName& index) {
    std::lock_guard lock(mutex_);
    Name name{index.database, index.design_document};
    return series_.contains(name) || series_.size() < kMaxSeries ? name : Name{kOthers, kOthers};
  }

  prometheus::Gauge& series_of(const Name& name) {
    auto& found = series_[name];
    if (found == nullptr) {
      found =
          &metrics_.gauge("divan_index_lag_changes",
                          "Changed documents that are not in the index yet, of indexes that are being built "
                          "or wait; not counted beyond 10,000, unless the index was never built.",
                          {{"database", name.first}, {"design_document", name.second}});
    }
    return *found;
  }

  Metrics& metrics_;
  kv::Database& store_;
  docs::Catalog& catalog_;
  Mutex mutex_{MutexRank::ken_lag, "Lag::mutex_"};  // protects series_
  std::map<Name, prometheus::Gauge*> series_;
};

}  // namespace

std::int64_t changes_behind(kv::Transaction& tx, docs::Catalog& catalog, std::string_view name,
                            std::string_view signature) {
  const auto database = catalog.find(tx, name);
  if (!database) return 0;
  const auto built =
      index::read_sequence(tx, index::IndexKeys(*database, signature), kv::Isolation::snapshot);
  if (built != kv::Versionstamp()) return docs::count_index_changes(tx, *database, built, kMaxCounted);
  const auto info = docs::read_info(tx, *database);
  return info.doc_count + info.doc_del_count;
}

void measure(Metrics& metrics, const Ken& ken, kv::Database& store, docs::Catalog& catalog) {
  const auto lag = std::make_shared<Lag>(metrics, store, catalog);
  auto& queue = metrics.gauge("divan_ken_queue", "Databases that wait to be scanned by ken.");
  auto& active =
      metrics.gauge("divan_ken_channels_used", "Index jobs that ken has asked for and that have not ended.");
  auto& waiting = metrics.gauge("divan_ken_waiting", "Indexes that are behind and may not be built yet.");
  metrics.on_collect([&, lag] {
    const auto status = ken.status();
    queue.Set(static_cast<double>(status.queue.size()));
    active.Set(static_cast<double>(status.active.size()));
    waiting.Set(static_cast<double>(status.waiting.size()));
    lag->show(status);
  });
}

}  // namespace divan::ken
