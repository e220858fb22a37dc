// One io thread's event loop and the connections that live on it.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "divan/base/clock.h"
#include "divan/http/connection.h"
#include "divan/http/net.h"
#include "divan/http/server.h"

namespace divan::http {

/// A loop ends by itself once it is told to stop and its last connection has closed. All is called on its own
/// thread unless marked otherwise.
class Loop {
 public:
  /// The references must outlive it.
  Loop(const ServerOptions& options, const Clock& clock, const Handler& handler);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// Serves until it ends: the thread's function.
  void run();

  // From any thread.
  asio::io_context& context() { return *context_; }
  std::size_t connections() const { return count_; }
  /// Counts a connection that adopt() is about to get.
  void expect_connection() { ++count_; }

  void adopt(Socket socket);
  void remove(Connection& connection);
  /// The connection has a timeout to be looked after, for as long as it says so.
  void time(const Connection& connection) { timed_[connection.index] = true; }
  void begin_stop();
  bool stopping() const { return stopping_; }

  const ServerOptions& options() const { return options_; }
  const Handler& handler() const { return handler_; }
  std::shared_ptr<Mailbox> mailbox() const;
  /// The Date and Server fields' lines, made anew each second.
  std::string_view own_fields();

 private:
  class LoopMailbox;

  void arm_tick();
  void tick();
  void serve_mail();
  template <class Action>
  static void guarded(Connection& connection, Action action);
  template <class Action>
  void for_each_connection(Action action);

  const ServerOptions& options_;
  const Clock& clock_;
  const Handler& handler_;
  // Shared with the mailbox, which handlers may hold for longer than the server lives.
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
  // Of each of them, whether a tick looks at it: ten thousand feeds that wait cost it next to nothing.
  std::vector<char> timed_;
  std::vector<std::shared_ptr<ExchangeState>> mail_;
  std::int64_t own_fields_second_ = -1;
  std::string own_fields_;
};

}  // namespace divan::http
