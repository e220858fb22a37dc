// Shared by the tests of servers and clients: a server on a free port, a raw connection that sends arbitrary
// bytes, and a flag to wait for. Time limits are generous: they only end a test that hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "divan/http/client.h"
#include "divan/http/server.h"

namespace divan::http::testing {

inline constexpr std::chrono::milliseconds kPatience{60'000};

/// A request for "/".
inline constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A flag that one thread raises and another waits for. Thread-safe.
class Flag {
 public:
  void raise() {
    std::lock_guard lock(mutex_);
    ++raised_;
    changed_.notify_all();
  }
  /// Returns true if the flag has been raised `times` times within kPatience.
  bool wait(int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return raised_ >= times; });
  }
  int times() {
    std::lock_guard lock(mutex_);
    return raised_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int raised_ = 0;
};

/// Waits for `condition()`. Returns true if it became true within kPatience.
template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

/// Two io threads, the machine's clock.
inline ServerOptions options() {
  ServerOptions options;
  options.threads = 2;
  options.version = "test";
  return options;
}

struct TestServer {
  explicit TestServer(Handler handler, ServerOptions server_options = options())
      : server(std::move(server_options), clock, std::move(handler)) {}
  SystemClock clock;
  Server server;
};

/// A connection that sends arbitrary bytes. Not thread-safe.
class RawClient {
 public:
  explicit RawClient(const Server& server) : socket_("127.0.0.1", server.port(), kPatience, kPatience) {}

  /// Returns false if the server has closed the connection.
  bool send(std::string_view bytes) { return socket_.send(bytes); }
  void end_output() { socket_.end_output(); }
  void reset_at_close() { socket_.reset_at_close(); }
  /// Returns true if the connection was reset instead of closed.
  bool broken() const { return broken_; }
  bool readable() const { return !input_.empty() || socket_.readable(); }

  /// The next response; throws if it is malformed or the connection ends within it.
  ClientResponse response(bool head_only = false) {
    ClientResponse response;
    ParserLimits limits;
    limits.max_body_bytes = 1 << 30;
    ResponseParser parser(limits, head_only, [&](std::string_view part) { response.body += part; });
    for (;;) {
      input_.erase(0, parser.feed(input_));
      if (parser.done()) break;
      if (!receive()) {
        parser.feed_end();
        break;
      }
    }
    response.status = parser.status();
    response.headers = parser.headers();
    return response;
  }

  /// The bytes up to and including `mark`; all up to the end of the connection if `mark` does not occur.
  std::string until(std::string_view mark) {
    for (;;) {
      const auto at = input_.find(mark);
      if (at != std::string::npos) {
        auto bytes = input_.substr(0, at + mark.size());
        input_.erase(0, at + mark.size());
        return bytes;
      }
      if (!receive()) return std::exchange(input_, {});
    }
  }
  std::string until_end() {
    while (receive()) continue;
    return std::exchange(input_, {});
  }

 private:
  bool receive() {
    char bytes[16 << 10];
    const auto size = socket_.receive(bytes);
    broken_ = !size;
    input_.append(bytes, size.value_or(0));
    return size.value_or(0) > 0;
  }

  ClientSocket socket_;
  std::string input_;
  bool broken_ = false;
};

}  // namespace divan::http::testing
