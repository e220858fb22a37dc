// A request and the way to answer it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "divan/http/message.h"

namespace divan::http {

class ExchangeState;

/// Logs a failure of the server while it worked on a request: a status from 500 on, except 501 (which says
/// what the server does not have).
void log_failure(const Request& request, const Error& error);

/// One request and its answer, which is either respond(), or start(), write()s and end(). The handler keeps
/// it as long as it needs to answer, on any thread and beyond the end of the handler's call. Destroyed
/// unanswered, it answers 500; destroyed between start() and end(), it cuts the connection, so that the
/// client sees that something is missing.
///
/// Thread-safe (request() and take_body() excepted: one thread at a time). Nothing here blocks. Callbacks run
/// on the connection's io thread: they must not block or throw, and may call anything here. They are
/// destroyed when the answer is complete or the connection is lost, so they may own the exchange. After the
/// client has gone every call is allowed and does nothing.
class Exchange {
 public:
  using Callback = std::function<void()>;
  using TimerId = std::uint64_t;

  explicit Exchange(std::shared_ptr<ExchangeState> state);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const Request& request() const;
  /// Moves the request's body out.
  std::string take_body();

  /// Answers. For HEAD, answer as for GET: the body is counted but not sent.
  void respond(Response response);
  /// Answers with the error, and logs it if log_failure() does.
  void fail(const Error& error);

  /// Begins a streamed answer; the head's body, if any, is its first part. Chunked for HTTP/1.1 and ended by
  /// the connection's end for HTTP/1.0, unless the head has a Content-Length field: then the stream must have
  /// exactly so many bytes, or the connection is cut.
  void start(Response head);
  /// Whether an answer has begun, so that it is too late for another.
  bool answered() const;

  /// Adds to the stream. Writes of one thread keep their order; what gathers before the socket takes it goes
  /// out together. More than ServerOptions::max_unsent_bytes unsent drops the client.
  void write(std::string bytes);
  /// Ends the stream.
  void end();
  /// Bytes of the stream that the socket has not taken yet.
  std::size_t unsent() const;
  /// Calls once, as soon as unsent() is 0 (also if it is already). A second one replaces the first.
  void on_drained(Callback callback);

  /// Calls once when the client has ended its side of the connection before the answer is complete; also if
  /// that has happened already. A second one replaces the first. The client may be gone, or have closed its
  /// side only (a half-close) and wait for the answer: nothing tells the two apart before something is
  /// written. So what is finite is answered to its end, and what would wait or go on without end (a feed)
  /// ends now. What is not answered within ServerOptions::half_close_timeout is dropped.
  void on_half_close(Callback callback);
  /// Returns true if the client has ended its side of the connection.
  bool half_closed() const;

  /// Calls once when the connection is lost (or the client dropped, or the server stopped) before the answer
  /// is complete; also if that has happened already. A second one replaces the first. Not called after the
  /// server has stopped.
  void on_close(Callback callback);
  /// Returns true if the connection is lost: nothing that is written reaches the client.
  bool closed() const;

  /// Calls once after `delay`, unless the exchange is over by then or the timer is cancelled.
  TimerId after(std::chrono::milliseconds delay, Callback callback);
  /// The callback will not begin any more, though it may be running just now on the io thread.
  void cancel(TimerId timer);

 private:
  const std::shared_ptr<ExchangeState> state_;
};

}  // namespace divan::http
