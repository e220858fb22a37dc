// What a handler has said about an exchange and its connection has not done yet: the meeting place of any
// thread with the connection's io thread.
//
// A handler's call changes the state under its mutex and, unless that has been done already, puts it into the
// io thread's mailbox; there Connection::service takes everything that has gathered. So many calls cost one
// wake-up, and the connection itself needs no lock. While the handler is called on the io thread the state
// counts as being in the mailbox: service follows anyway, and an answer at once wakes nobody.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "divan/http/exchange.h"

namespace divan::http {

class Connection;
class ExchangeState;

/// Where states wait for their io thread. Thread-safe.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  /// Has the io thread serve `state` soon. False once that thread has ended.
  virtual bool push(std::shared_ptr<ExchangeState> state) = 0;
};

/// Thread-safe, but for what is marked as the io thread's.
class ExchangeState : public std::enable_shared_from_this<ExchangeState> {
 public:
  using Callback = Exchange::Callback;
  using TimerId = Exchange::TimerId;

  struct NewTimer {
    TimerId id;
    std::chrono::milliseconds delay;
  };

  /// What has gathered for the connection.
  struct Work {
    std::vector<NewTimer> new_timers{};
    std::vector<TimerId> cancelled_timers{};
    bool cut = false;                    ///< drop the client
    std::optional<Response> response{};  ///< the answer or, for a stream, its head
    bool stream = false;
    std::string data{};  ///< the stream's next bytes
    bool ended = false;  ///< nothing comes after `data`
  };

  ExchangeState(Request request_in, std::shared_ptr<Mailbox> mailbox, std::size_t max_unsent)
      : request(std::move(request_in)), mailbox_(std::move(mailbox)), max_unsent_(max_unsent) {}

  Request request;
  /// The io thread's: nothing once the exchange is over.
  Connection* connection = nullptr;

  // For the handler.
  void respond(Response response);
  void start(Response head);
  bool answered() const;
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
  /// The handler has let go of the exchange.
  void abandon();

  // For the connection, on its io thread.
  /// Takes timers and `cut`, and the output if `with_output`.
  Work take(bool with_output);
  /// So many bytes of the stream are with the socket.
  void sent(std::size_t bytes);
  /// Calls on_drained's callback if nothing is unsent.
  void drained();
  void run_timer(TimerId id);
  /// The client has ended its side: calls on_half_close's callback, if there is one now.
  void half_close();
  /// The mailbox has given out a state whose exchange is over.
  void served_late();
  /// The answer is complete.
  void finish();
  /// The connection is lost: calls on_close's callback.
  void lose();

 private:
  enum class Phase { waiting, streaming, complete };

  struct Callbacks {
    Callback drained{};
    Callback half_close{};
    Callback close{};
    std::map<TimerId, Callback> timers{};
  };

  void schedule(std::unique_lock<std::mutex> lock);
  void begin(std::unique_lock<std::mutex> lock, Phase next, Response response);
  void call_on_close();

  const std::shared_ptr<Mailbox> mailbox_;
  const std::size_t max_unsent_;

  mutable std::mutex mutex_;
  Phase phase_ = Phase::waiting;
  bool scheduled_ = true;
  bool half_closed_ = false;  // the client's side has ended
  bool lost_ = false;         // the connection is lost before the answer was complete
  bool over_ = false;         // the connection does not serve this exchange any more
  std::size_t unsent_ = 0;
  TimerId last_timer_ = 0;
  Work work_;
  Callbacks callbacks_;
};

}  // namespace divan::http
