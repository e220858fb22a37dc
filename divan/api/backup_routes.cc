// The whole store as a file.
#include <condition_variable>
#include <mutex>

#include "divan/api/routes.h"
#include "divan/backup/backup.h"
#include "divan/base/log.h"

namespace divan::api {
namespace {

// Each holds a thread, and a version of the store whose later overwritten rows cannot go.
constexpr int kMaxBackups = 4;
// What may lie in the socket's queue before the backup waits for the client.
constexpr std::size_t kMaxUnsent = 1 << 20;

// Counts the backups that are being taken.
class Place {
 public:
  explicit Place(std::atomic<int>& taken) : taken_(taken) {
    if (taken_++ < kMaxBackups) return;
    --taken_;
    throw Error(503, "too_many_backups", fmt::format("{} backups are being taken already.", kMaxBackups));
  }
  ~Place() { --taken_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  std::atomic<int>& taken_;
};

// The socket, as something that a thread writes to and waits for.
class Outlet {
 public:
  explicit Outlet(http::Exchange& exchange) : exchange_(exchange) {
    exchange_.on_close([signal = signal_] { signal->raise(); });
  }

  // False if the client has gone.
  bool write(std::string_view bytes) {
    exchange_.write(std::string(bytes));
    while (exchange_.unsent() > kMaxUnsent && !exchange_.closed()) {
      exchange_.on_drained([signal = signal_] { signal->raise(); });
      signal_->wait();
    }
    return !exchange_.closed();
  }

 private:
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool raised = false;

    void raise() {
      {
        std::lock_guard lock(mutex);
        raised = true;
      }
      changed.notify_one();
    }
    void wait() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return raised; });
      raised = false;
    }
  };

  http::Exchange& exchange_;
  const std::shared_ptr<Signal> signal_ = std::make_shared<Signal>();
};

}  // namespace

// Holds its thread to the end: the store gives rows as fast as they can be taken, and there are few backups.
Answer backup(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const Place place(context.backups);
  http::Exchange& exchange = *call->exchange();
  http::Response head;
  head.headers = {{"Content-Type", "application/octet-stream"}, {"Cache-Control", "no-store"}};
  if (exchange.request().method() == "HEAD") return head;
  exchange.start(std::move(head));
  Outlet outlet(exchange);
  try {
    const bool complete = backup::write_backup(
        context.store, {context.version, context.server_uuid, context.clock.wall_ms()},
        [&](std::string_view bytes) { return outlet.write(bytes) && !context.stopping; });
    // Otherwise nobody keeps the exchange, which cuts the connection: the client sees that something is
    // missing.
    if (complete) exchange.end();
  } catch (const Error& error) { log::error("A backup was cut off: {}", error.what()); }
  exchange.on_close([] {});
  return std::nullopt;
}

}  // namespace divan::api
