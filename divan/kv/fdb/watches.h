// The watches of a store: from the transaction that asks for them to their end.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_set>

#include "divan/base/mutex.h"
#include "divan/kv/fdb/future.h"
#include "divan/kv/store.h"

namespace divan::kv::fdb {

class Watches;

/// A watch that was requested and is then set or cancelled by its transaction's end. Thread-safe.
class WatchEntry : public std::enable_shared_from_this<WatchEntry> {
 public:
  /// Its transaction is committed.
  void set();
  /// Its transaction is not committed.
  void cancel() { end(&Watch::cancel); }

 private:
  friend class Watches;
  struct Shared;
  explicit WatchEntry(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  static void on_ready(FdbFuture*, void* parameter);
  void future_ready();
  void learn(bool& what);  // fires when the watch is set and its future is ready
  void end(void (Watch::*how)());

  const std::shared_ptr<Shared> shared_;
  Mutex mutex_{MutexRank::fdb_watch, "WatchEntry::mutex_"};  // protects the members below
  std::weak_ptr<Watch> watch_;
  std::optional<Future> future_;
  bool is_set_ = false;
  bool is_ready_ = false;
  bool has_ended_ = false;
};

/// Thread-safe. Its own thread ends the watches, so that their callbacks may use the store. On the client's
/// thread they must not.
class Watches {
 public:
  explicit Watches(std::size_t limit);
  /// Cancels all.
  ~Watches();

  struct Asked {
    std::shared_ptr<Watch> watch;
    std::shared_ptr<WatchEntry> entry;
  };
  /// Makes a watch that ends when the future that `ask` returns is ready and its transaction is committed.
  /// Throws too_many_watches.
  Asked add(const Api& api, const std::function<Future()>& ask);

 private:
  void run();

  const std::shared_ptr<WatchEntry::Shared> shared_;
  std::thread thread_;
};

}  // namespace divan::kv::fdb
