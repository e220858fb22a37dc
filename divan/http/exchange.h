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

  /// Calls once when the client goes away (or is dropped, or the server stops) before the answer is complete;
  /// also if that has happened already. A second one replaces the first. A client that only ends its side of
  /// the connection counts as gone here, yet still gets what is written. Not called after the server has
  /// stopped.
  void on_close(Callback callback);
  /// Whether the client has gone away.
  bool closed() const;

  /// Calls once after `delay`, unless the exchange is over by then or the timer is cancelled.
  TimerId after(std::chrono::milliseconds delay, Callback callback);
  /// The callback will not begin any more, though it may be running just now on the io thread.
  void cancel(TimerId timer);

 private:
  const std::shared_ptr<ExchangeState> state_;
};

}  // namespace divan::http
