// Notices that a database is deleted.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "divan/events/bus.h"
#include "divan/events/database_events.h"

namespace divan::index {

/// Calls `deleted` when the database is deleted, from the thread that publishes that. Thread-compatible. The
/// bus must outlive it.
class DeletionWatch {
 public:
  DeletionWatch(events::Bus& bus, const std::string& database, std::function<void()> deleted)
      : deleted_(std::move(deleted)) {
    auto subscription = bus.subscribe(events::database_channel(database), {.notify = [this] { look(); }});
    {
      std::lock_guard lock(mutex_);
      subscription_ = std::move(subscription);
      ready_ = true;
    }
    look();
  }
  DeletionWatch(const DeletionWatch&) = delete;
  DeletionWatch& operator=(const DeletionWatch&) = delete;
  ~DeletionWatch() { subscription_.end(); }

 private:
  void look() {
    bool deleted = false;
    {
      std::lock_guard lock(mutex_);
      if (!ready_) return;
      while (const auto message = subscription_.try_next()) {
        deleted |=
            message->event && message->event->kind == events::kind_name(events::DatabaseEvent::deleted);
      }
    }
    if (deleted) deleted_();
  }

  const std::function<void()> deleted_;
  std::mutex mutex_;
  bool ready_ = false;
  events::Subscription subscription_;
};

}  // namespace divan::index
