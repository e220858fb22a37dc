#include "divan/app/service_manager.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "divan/base/log.h"

namespace divan::app {
namespace {

constexpr int kReportsPerPeriod = 3;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<Duration> watchdog_period() {
  const std::string process = variable("WATCHDOG_PID");
  if (!process.empty() && process != std::to_string(::getpid())) return std::nullopt;
  const std::string text = variable("WATCHDOG_USEC");
  std::int64_t microseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), microseconds);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || microseconds <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

}  // namespace

ServiceManager::ServiceManager(const Clock& clock)
    : clock_(clock), socket_(variable("NOTIFY_SOCKET")), watchdog_(watchdog_period()) {}

void ServiceManager::ready(const std::string& status, std::function<bool()> is_alive) {
  notify("READY=1\nSTATUS=" + status);
  if (socket_.empty() || !watchdog_) return;
  loop_.emplace(clock_, "watchdog", [this, is_alive = std::move(is_alive)] {
    if (is_alive()) notify("WATCHDOG=1");
    return clock_.now() + *watchdog_ / kReportsPerPeriod;
  });
  loop_->start();
}

void ServiceManager::stopping() {
  loop_.reset();
  notify("STOPPING=1\nSTATUS=Stopping");
}

void ServiceManager::restarting() {
  loop_.reset();
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now().time_since_epoch());
  notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=Restarting", now.count()));
}

void ServiceManager::notify(std::string_view state) const {
  if (socket_.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof address.sun_path)
    return log::warning("Cannot notify the service manager: NOTIFY_SOCKET is too long.");
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';  // an abstract socket: unix(7)
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool sent = socket >= 0 && ::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL,
                                            reinterpret_cast<sockaddr*>(&address), size) >= 0;
  if (!sent) log::warning("Cannot notify the service manager at {}: {}", socket_, std::strerror(errno));
  if (socket >= 0) ::close(socket);
}

}  // namespace divan::app
