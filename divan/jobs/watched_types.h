// The settings of all job types, as a background component needs them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "divan/base/notifier.h"
#include "divan/jobs/queue_core.h"

namespace divan::jobs {

/// Not thread-safe. The queue and store must outlive it.
class WatchedTypes {
 public:
  using Types = std::map<std::string, TypeSettings, std::less<>>;

  WatchedTypes(QueueCore& queue, kv::Database& store) : queue_(queue), store_(store) {}

  /// Reads all settings again if one has changed; returns true if so. Otherwise it reads one row. Damaged
  /// settings are reported and left out. When settings change later, `notifier` is notified; if the store has
  /// no watch left, the next call sees the change.
  bool refresh(const std::shared_ptr<Notifier>& notifier);

  /// Returns true if a setting may have changed since the last call of refresh().
  bool may_have_changed() const { return !watch_ || watch_->fired() || watch_->cancelled(); }

  const Types& types() const { return types_; }

 private:
  Types read(kv::Transaction& tx);

  QueueCore& queue_;
  kv::Database& store_;
  std::optional<std::string> version_;
  Types types_;
  std::shared_ptr<kv::Watch> watch_;
};

}  // namespace divan::jobs
