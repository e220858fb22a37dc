// The state that an exchange (any thread) shares with its connection (the io thread): what the handler has
// called and the connection has not done yet.
//
// A handler's call changes the state under its mutex and puts the state into the io thread's mailbox unless
// it is there already; Connection::service then takes everything that was collected. So many calls cost one
// wake-up, and the connection needs no lock. While the handler is called on the io thread, the state counts
// as being in the mailbox: service() follows anyway, so an immediate response causes no wake-up.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "divan/base/mutex.h"
#include "divan/http/message.h"

namespace divan::http {

class Connection;
class ExchangeState;

/// The queue of states that their io thread has to serve. Thread-safe.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  /// Makes the io thread serve `state` soon. Returns false if that thread has ended.
  virtual bool push(std::shared_ptr<ExchangeState> state) = 0;
  // As in Exchange.
  virtual bool resume(std::coroutine_handle<> coroutine) = 0;
  virtual bool call_after(std::chrono::nanoseconds delay, std::function<void()> callback) = 0;
  virtual bool claim_idle_thread() = 0;
};

/// Thread-safe, except members that are marked as the io thread's.
class ExchangeState : public std::enable_shared_from_this<ExchangeState> {
 public:
  using Callback = std::function<void()>;
  using TimerId = std::uint64_t;

  struct NewTimer {
    TimerId id;
    std::chrono::milliseconds delay;
  };

  /// What was collected for the connection.
  struct Work {
    std::vector<NewTimer> new_timers{};
    std::vector<TimerId> cancelled_timers{};
    bool cut = false;                    ///< disconnect the client
    std::optional<Response> response{};  ///< the response or, for a stream, its head
    bool stream = false;
    std::string data{};  ///< the stream's next bytes
    bool ended = false;  ///< `data` is the last of the stream
  };

  ExchangeState(Request request_in, std::shared_ptr<Mailbox> mailbox, std::size_t max_unsent,
                bool has_streamed_body)
      : request(std::move(request_in)),
        mailbox_(std::move(mailbox)),
        max_unsent_(max_unsent),
        has_streamed_body_(has_streamed_body) {}

  Request request;
  bool is_tls = false;
  /// The io thread's: null once the exchange has ended.
  Connection* connection = nullptr;

  // For the handler.
  bool has_streamed_body() const { return has_streamed_body_; }
  void read_body(std::size_t bytes, Callback callback);
  StreamedBodyPart take_streamed_body();
  void set_extra_headers(Headers headers);
  void respond(Response response);
  void start(Response head);
  bool responded() const;
  void write(std::string bytes);
  void end();
  std::size_t unsent() const;
  void on_drained(Callback callback);
  void on_half_close(Callback callback);
  bool half_closed() const;
  void on_close(Callback callback);
  bool closed() const;
  TimerId after(std::chrono::milliseconds delay, Callback callback);
  void cancel(TimerId timer);
  Mailbox& mailbox() const { return *mailbox_; }
  /// Called when the handler has destroyed the exchange.
  void abandon();

  // For the connection, on its io thread.
  /// Takes timers and `cut`, and the output if `with_output`.
  Work take(bool with_output);
  /// Bytes of the streamed body that the handler still waits for.
  std::size_t wanted_body() const;
  void add_body(std::string data, bool is_last);
  /// Called when the rest of the body cannot be read.
  void fail_body(const Error& error);
  /// Called when `bytes` of the stream were written to the socket.
  void sent(std::size_t bytes);
  /// Calls on_drained's callback if nothing is unsent.
  void drained();
  void run_timer(TimerId id);
  /// Called when the client has ended its side: calls on_half_close's callback if it is set.
  void half_close();
  /// Called when the mailbox has returned a state whose exchange has ended.
  void served_late();
  /// Called when the response is complete.
  void finish();
  /// Called when the connection is lost: calls on_close's callback.
  void lose();

 private:
  enum class Phase { waiting, streaming, complete };

  struct Callbacks {
    Callback body{};
    Callback drained{};
    Callback half_close{};
    Callback close{};
    std::map<TimerId, Callback> timers{};
  };

  void schedule(std::unique_lock<Mutex> lock);
  void begin(std::unique_lock<Mutex> lock, Phase next, Response response);
  void call_on_close();

  const std::shared_ptr<Mailbox> mailbox_;
  const std::size_t max_unsent_;
  const bool has_streamed_body_;

  mutable Mutex mutex_{MutexRank::exchange, "ExchangeState::mutex_"};  // protects the members below
  Phase phase_ = Phase::waiting;
  bool scheduled_ = true;
  bool half_closed_ = false;     // the client's side has ended
  bool lost_ = false;            // the connection was lost before the response was complete
  bool over_ = false;            // the connection does not serve this exchange any more
  StreamedBodyPart body_;        // what has arrived and was not taken
  std::size_t wanted_body_ = 0;  // after `body_`
  std::optional<Error> body_error_;
  std::size_t unsent_ = 0;
  TimerId last_timer_ = 0;
  Headers extra_headers_;
  Work work_;
  Callbacks callbacks_;
};

}  // namespace divan::http
