// The watches that have been set and not fired.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "divan/base/mutex.h"
#include "divan/kv/embedded/snapshot.h"
#include "divan/kv/embedded/write_map.h"

namespace divan::kv::embedded {

/// A watch that a transaction has asked for, with the value that it saw.
struct WatchRequest {
  std::string key;
  std::optional<std::string> seen;
  std::shared_ptr<Watch> watch;
};

/// Thread-safe. Keeps watches weakly: a watch without owners is dropped.
class WatchTable {
 public:
  explicit WatchTable(std::size_t limit) : limit_(limit) {}

  /// Counts a watch that is to be set later, if its transaction is committed. Throws too_many_watches.
  void admit(const std::shared_ptr<Watch>& watch);

  /// Sets a watch that was admitted; fires it at once if `latest` shows another value than the transaction
  /// saw. `latest` must be taken after the call begins (so it is asked for), or a change in between would be
  /// lost. Fires as well if the value cannot be read, as check() does.
  void add(const WatchRequest& request, const std::function<std::shared_ptr<const Snapshot>()>& latest);

  /// The keys among these that have watches.
  std::vector<std::string> watched(const std::vector<std::string>& keys,
                                   const std::vector<KeyRange>& ranges) const;

  /// Fires the watches on those of the given keys whose value in `now` differs from what was seen. May read
  /// from the disk.
  void check(const std::vector<std::string>& keys, const Snapshot& now);

  /// Returns true if there are watches; without them a commit need not collect its keys.
  bool empty() const;

  /// Cancels all watches. For when the store closes.
  void cancel_all();

 private:
  struct Entry {
    std::optional<std::string> seen;
    std::weak_ptr<Watch> watch;
  };
  using Entries = std::multimap<std::string, Entry, std::less<>>;

  void forget_dead();
  std::size_t size() const { return admitted_.size() + entries_.size(); }

  const std::size_t limit_;
  mutable Mutex mutex_{MutexRank::embedded_watches, "WatchTable::mutex_"};  // protects the members below
  Entries entries_;
  // Not set yet.
  std::set<std::weak_ptr<Watch>, std::owner_less<>> admitted_;
};

}  // namespace divan::kv::embedded
