// Messages to the service manager that started this process, with the protocol of systemd's sd_notify(3).
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

  /// Reports that the service has started. If the manager has enabled the watchdog for this process
  /// (WATCHDOG_USEC), starts a thread that calls `is_alive`, which may block, three times in that period, and
  /// sends a watchdog message each time that it returns true. The manager restarts a service that sends none
  /// for the whole period.
  void ready(const std::string& status, std::function<bool()> is_alive);

  // Both join the thread.

  void stopping();
  /// The process is going to execute the program again, which will be ready() later.
  void restarting();

 private:
  void notify(std::string_view state) const;

  const Clock& clock_;
  const std::string socket_;                // empty: there is no manager
  const std::optional<Duration> watchdog_;  // the period of the watchdog; nullopt: it is not enabled
  std::optional<WorkerLoop> loop_;          // sends the watchdog messages
};

}  // namespace divan::app
