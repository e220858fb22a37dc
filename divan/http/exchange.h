// A request and its response, as the handler sees them.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "divan/http/message.h"

namespace divan::http {

class ExchangeState;

/// Sees the response of one exchange; it is destroyed with the exchange, on any thread.
class ExchangeObserver {
 public:
  virtual ~ExchangeObserver() = default;
  /// The response, or the head of a stream, is given to the connection. Called once at most, on any thread;
  /// it must not block.
  virtual void responding(int status) = 0;
};

/// One request and its response: either one call of respond(), or start(), any number of write() and end().
/// The handler may keep the exchange after it has returned, and respond on any thread. If the exchange is
/// destroyed before a response, the client gets a 500; if it is destroyed between start() and end(), the
/// connection is cut, so that the client sees that the response is incomplete.
///
/// Thread-safe, except request() and take_body(): one thread at a time. No function blocks. Callbacks run on
/// the connection's io thread: they must not block or throw, and may call every function of this class. They
/// are destroyed when the response is complete or the connection is lost, so they may own the exchange. After
/// the client has disconnected, every call is allowed and has no effect.
class Exchange {
 public:
  using Callback = std::function<void()>;
  using TimerId = std::uint64_t;

  explicit Exchange(std::shared_ptr<ExchangeState> state);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Sets the observer of this exchange. Call it before the response, on the thread that receives the
  /// exchange.
  void set_observer(std::unique_ptr<ExchangeObserver> observer) { observer_ = std::move(observer); }

  /// Returns true if the connection uses TLS.
  bool is_tls() const;
  const Request& request() const;
  /// Moves the request's body out.
  std::string take_body();
  /// Sets request().body(), which was streamed. Not thread-safe, as take_body().
  void set_body(std::string body);

  /// Returns true if the request's body is streamed (ServerOptions::streamed_body): request().body() is
  /// empty.
  bool has_streamed_body() const;
  /// Asks for `bytes` of a streamed body, or fewer at its end. Calls `callback` once when
  /// take_streamed_body() returns them, or throws. Until then no more than a few KB are read from the client;
  /// so a handler that responds without having read all closes the connection. A later call replaces the
  /// callback.
  void read_body(std::size_t bytes, Callback callback);
  /// Returns the next part of the streamed body, which is empty if nothing has arrived. Throws the error of a
  /// body that is malformed (400), too large (413), or does not arrive in time (408).
  StreamedBodyPart take_streamed_body();

  /// Fields that the response or the head of the stream will have besides its own. A later call replaces
  /// them; after the response has begun it has no effect.
  void set_extra_headers(Headers headers);

  /// Sends the response. For HEAD, respond as for GET: the body counts for Content-Length but is not sent.
  void respond(Response response);
  /// Responds with the error and calls log_failure().
  void fail(const Error& error);

  /// Starts a streamed response; the head's body, if any, is its first part. The stream is chunked for
  /// HTTP/1.1, and ends with the connection for HTTP/1.0. If the head has a Content-Length field, the stream
  /// must have exactly that many bytes, or the connection is cut.
  void start(Response head);
  /// Returns true once respond(), fail() or start() was called.
  bool responded() const;

  /// Appends to the stream. Writes of one thread keep their order; writes that are pending when the socket
  /// becomes writable are sent together. The client is disconnected if more than
  /// ServerOptions::max_unsent_bytes are unsent.
  void write(std::string bytes);
  /// Ends the stream.
  void end();
  /// Bytes of the stream that were not yet written to the socket.
  std::size_t unsent() const;
  /// Calls `callback` once, as soon as unsent() is 0 (also if it is 0 already). A later call replaces the
  /// callback.
  void on_drained(Callback callback);

  /// Calls `callback` once when the client ends its side of the connection before the response is complete
  /// (also if it has done so already). A later call replaces the callback. The client may have disconnected,
  /// or have half-closed the connection and wait for the response; the two cannot be distinguished before
  /// something is written. So complete a finite response, and end one that would wait or continue without end
  /// (a feed). The client is disconnected if nothing is written within ServerOptions::half_close_timeout.
  void on_half_close(Callback callback);
  /// Returns true if the client has ended its side of the connection.
  bool half_closed() const;

  /// Calls `callback` once when the connection is lost (or the client is disconnected, or the server stops)
  /// before the response is complete; also if that has happened already. A later call replaces the callback.
  /// Not called after the server has stopped.
  void on_close(Callback callback);
  /// Returns true if the connection is lost: further writes do not reach the client.
  bool closed() const;

  /// Calls `callback` once after `delay`, unless the exchange has ended or the timer is cancelled.
  TimerId after(std::chrono::milliseconds delay, Callback callback);
  /// After the return the callback does not start any more; it may still be running on the io thread.
  void cancel(TimerId timer);

  /// Resumes the coroutine on the connection's io thread, soon and not during the call, whether or not the
  /// exchange has ended. Returns false, without resuming it, if that thread has ended.
  bool resume(std::coroutine_handle<> coroutine);
  /// Calls `callback` there after `delay`, in the same way.
  bool call_after(std::chrono::nanoseconds delay, Callback callback);
  /// On the connection's io thread: returns true, once for each event, if that thread was idle before the
  /// event that it processes. Then probably nobody waits for it, and to block for a moment does less harm
  /// than to be woken later.
  bool claim_idle_thread();

 private:
  void notify_observer(int status);

  const std::shared_ptr<ExchangeState> state_;
  std::unique_ptr<ExchangeObserver> observer_;
};

/// Handles a request. Called on an io thread, so it must not block: it responds at once or passes the
/// exchange to another thread. If it throws, the response is the Error, or 500 for any other exception.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace divan::http
