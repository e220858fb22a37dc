// Detects that a database is deleted.
#pragma once

#include <functional>
#include <string>

#include "divan/base/mutex.h"
#include "divan/events/bus.h"
#include "divan/events/database_events.h"

namespace divan::events {

/// Calls `deleted` when the database is deleted, on the thread that publishes the event. The bus must outlive
/// it. Once the destructor has returned, `deleted` does not run and will not be called.
class DeletionWatch {
 public:
  DeletionWatch(Bus& bus, const std::string& database, std::function<void()> deleted)
      : deleted_(std::move(deleted)) {
    auto subscription = bus.subscribe(database_channel(database), {.notify = [this] { read_events(); }});
    {
      std::lock_guard lock(mutex_);
      subscription_ = std::move(subscription);
      ready_ = true;
    }
    read_events();
  }
  DeletionWatch(const DeletionWatch&) = delete;
  DeletionWatch& operator=(const DeletionWatch&) = delete;
  ~DeletionWatch() {
    // Destroyed after the lock: its end waits for a callback that runs, which then finds nothing to read.
    Subscription ending;
    std::lock_guard lock(mutex_);
    ready_ = false;
    ending = std::move(subscription_);
  }

 private:
  void read_events() {
    bool deleted = false;
    {
      std::lock_guard lock(mutex_);
      if (!ready_) return;
      while (const auto message = subscription_.try_next()) {
        deleted |= message->event && message->event->kind == kind_name(DatabaseEvent::deleted);
      }
    }
    if (deleted) deleted_();
  }

  const std::function<void()> deleted_;
  Mutex mutex_{MutexRank::deletion_watch, "DeletionWatch::mutex_"};  // protects the members below
  bool ready_ = false;
  Subscription subscription_;
};

}  // namespace divan::events
