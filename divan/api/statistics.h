// What a process has counted, with CouchDB's names: /_node/{name}/_stats. Only statistics that mean what
// CouchDB's mean are here; `/_node/{name}/_prometheus` has all metrics.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "divan/api/rolling_histogram.h"
#include "divan/base/clock.h"
#include "divan/base/striped.h"
#include "divan/http/exchange.h"

namespace divan::api {

/// Counts requests, and reads what other modules count. Thread-safe after the last add(). It must outlive all
/// exchanges, as must the clock.
class Statistics {
 public:
  enum class Kind { counter, gauge };

  explicit Statistics(const Clock& clock);

  /// Adds a statistic; `path` is its name in CouchDB's nested form ("couchdb.commits"). To be called before
  /// the first request. `value` may be called on any thread.
  void add(const std::string& path, Kind kind, std::string description, std::function<std::uint64_t()> value);

  /// Counts a request, its response and its time.
  void observe(http::Exchange& exchange);

  /// The requests so far.
  std::uint64_t requests() const { return requests_.total(); }

  /// The statistics below a path, all for an empty path, as JSON: {"value": ..., "type": ..., "desc": ...} at
  /// the leaves. "null" if there are none.
  std::string json(std::span<const std::string> path) const;

 private:
  class Observer;
  struct Entry {
    std::vector<std::string> path;
    std::string type;
    std::string description;
    std::function<std::string()> value;  // JSON
  };

  void add_entry(const std::string& path, std::string type, std::string description,
                 std::function<std::string()> value);
  template <class Name, std::size_t kSize>
  void add_counters(std::string_view group, std::string_view description,
                    const std::array<Name, kSize>& names, const std::array<StripedCounter, kSize>& counters);

  const Clock& clock_;
  std::vector<Entry> entries_;  // sorted by path
  StripedCounter requests_;
  std::array<StripedCounter, 7> methods_;    // as kMethods
  std::array<StripedCounter, 27> statuses_;  // as kStatuses
  RollingHistogram request_time_;
};

}  // namespace divan::api
