// What this process tells the service manager that started it: the protocol of systemd's sd_notify(3).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "divan/base/clock.h"
#include "divan/base/worker_loop.h"

namespace divan::app {

/// Does nothing without NOTIFY_SOCKET in the environment. Messages that cannot be sent are logged.
class ServiceManager {
 public:
  explicit ServiceManager(const Clock& clock);
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  /// The service has started. If the manager wants to hear from it regularly (WATCHDOG_USEC for this
  /// process), a thread reports that it is alive, three times in that period, whenever `is_alive` returns
  /// true; the manager restarts a service that has not been for the whole period. `is_alive` may block.
  void ready(const std::string& status, std::function<bool()> is_alive);
  // Both join the thread.

  void stopping();
  /// The process is going to execute the program again, which will be ready() later.
  void restarting();

 private:
  void notify(std::string_view state) const;

  const Clock& clock_;
  const std::string socket_;                // empty: there is no manager
  const std::optional<Duration> watchdog_;  // how long the service may be silent
  std::optional<WorkerLoop> loop_;          // reports that the process is alive
};

}  // namespace divan::app
