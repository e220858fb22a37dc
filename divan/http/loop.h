// One io thread's event loop and the connections that live on it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "divan/base/clock.h"
#include "divan/http/connection.h"
#include "divan/http/socket.h"

namespace divan::http {

/// A loop ends after stop() once its last connection has closed. Not thread-safe: called on its own thread
/// unless marked otherwise.
class Loop final : public ConnectionOwner {
 public:
  /// The references must outlive the loop.
  Loop(const ServerOptions& options, const Clock& clock, const Handler& handler);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// The thread's function: serves until the loop ends.
  void run();

  // From any thread.
  asio::io_context& context() { return *context_; }
  std::size_t connections() const { return count_; }
  /// Counts a connection before adopt() is called with it.
  void expect_connection() { ++count_; }

  void adopt(Socket socket);
  void remove(Connection& connection) override;
  void time(const Connection& connection) override { timed_[connection.index] = true; }
  void begin_stop();
  bool stopping() const override { return stopping_; }

  const ServerOptions& options() const override { return options_; }
  const Handler& handler() const override { return handler_; }
  std::shared_ptr<Mailbox> mailbox() const override;
  std::string_view own_fields() override;

 private:
  class LoopMailbox;

  void arm_tick();
  void tick();
  void serve();
  void serve_mail(std::size_t most_coroutines);
  template <class Action>
  static void guarded(Connection& connection, Action action);
  template <class Action>
  void for_each_connection(Action action);

  const ServerOptions& options_;
  const Clock& clock_;
  const Handler& handler_;
  // Shared with the mailbox, which handlers may hold beyond the lifetime of the server.
  const std::shared_ptr<asio::io_context> context_;
  const std::shared_ptr<LoopMailbox> mailbox_;
  asio::executor_work_guard<Executor> work_;
  Timer tick_;
  Timer stop_deadline_;
  std::chrono::milliseconds tick_length_;
  bool ticking_ = false;
  bool stopping_ = false;
  std::atomic<std::size_t> count_ = 0;
  std::vector<std::shared_ptr<Connection>> connections_;
  // For each connection, whether a tick checks it: ten thousand waiting feeds cost a tick next to nothing.
  std::vector<char> timed_;
  std::vector<std::shared_ptr<ExchangeState>> mail_;
  std::vector<std::coroutine_handle<>> coroutines_;
  std::int64_t own_fields_second_ = -1;
  std::string own_fields_;
};

}  // namespace divan::http
