// One client's connection, from accept to close.
//
// A connection repeats a cycle: it reads a request, responds (the handler has the exchange), and reads the
// next request, which may have been received already. A read is nearly always pending, also while the handler
// works, so that a client's disconnect is detected; reading pauses only while the input buffer is full.
// Output is written one batch at a time: the head, a body that is never copied, and a chunk's end in one
// gathered write. What the handler adds meanwhile is collected in the exchange's state and becomes the next
// batch.
#pragma once

#include <map>
#include <memory>

#include "divan/http/exchange.h"
#include "divan/http/exchange_state.h"
#include "divan/http/input_buffer.h"
#include "divan/http/parser.h"
#include "divan/http/serializer.h"
#include "divan/http/server_options.h"
#include "divan/http/socket.h"

namespace divan::http {

class Connection;

/// What a connection uses of its loop. Not thread-safe: called on the loop's io thread.
class ConnectionOwner {
 public:
  virtual const ServerOptions& options() const = 0;
  virtual const Handler& handler() const = 0;
  virtual std::shared_ptr<Mailbox> mailbox() const = 0;
  /// The lines of the Date and Server fields, updated each second.
  virtual std::string_view own_fields() = 0;
  virtual bool stopping() const = 0;
  /// Registers the connection: at each tick its timeouts are checked, while its is_timed() is true.
  virtual void time(const Connection& connection) = 0;
  virtual void remove(Connection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

/// Not thread-safe: all functions are called on the loop's io thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, ConnectionOwner& loop);

  void start();
  /// Processes what the exchange's state has collected.
  void service();
  /// Closes the connection or responds with 408 if a timeout has expired.
  void check_timeouts(SteadyTime now);
  /// Returns true if a timeout is running: the connection waits for its client.
  bool is_timed() const {
    return writing_ || phase_ == Phase::reading || phase_ == Phase::lingering || is_half_closed() ||
           waits_for_body_;
  }
  /// Closes the connection if no request is in progress, otherwise after its response.
  void stop();
  /// Closes at once; the client loses what it has not read.
  void abort();

  /// The index in the loop's table. Used by the loop only.
  std::size_t index = 0;

 private:
  enum class Phase {
    reading,     ///< a request, or waiting for one
    responding,  ///< the handler has exchange_
    refusing,    ///< sending the error response to an invalid request
    lingering,   ///< all is sent and our side is shut down; reading until the client closes
    closed,
  };

  // Input (connection.cc).
  void read();
  void on_readable(const ErrorCode& ec);
  void on_read(const ErrorCode& ec, std::size_t size);
  void on_input_end();
  void process();
  void process_input();
  void dispatch();
  void read_body();
  void refuse(const Error& error);
  void finish_exchange();
  void end_output();
  void close();
  void touch();
  // Returns true if the present request has a streamed body that is not complete.
  bool has_body_left() const { return parser_.is_streamed(); }
  // Returns true if the client has ended its side and the response is incomplete.
  bool is_half_closed() const { return phase_ == Phase::responding && input_ended_; }

  // Output (connection_output.cc).
  void set_timers(ExchangeState::Work& work);
  void pump(ExchangeState::Work work);
  bool stage(ExchangeState::Work work);
  void stage_response(Response response);
  void send_continue();
  void stage_stream_head(const Response& response);
  bool stage_data(std::string data, bool ended);
  void stage_head(const Response& response, Framing framing, std::uint64_t length);
  void clear_batch();
  void release_batch();
  bool flush();
  std::size_t batch_bytes() const { return head_.size() + body_.size() + tail_.size(); }
  void count_sent(std::size_t size);
  void wait_until_writable();
  void on_batch_sent();

  Socket socket_;
  ConnectionOwner& loop_;
  std::string peer_;
  Phase phase_ = Phase::reading;

  InputBuffer input_;
  RequestParser parser_;
  bool reading_ = false;         // a read is pending
  bool input_ended_ = false;     // the client has ended its side
  bool processing_ = false;      // process() is on the stack
  bool paused_ = false;          // process() continues after others have been served
  bool continued_ = false;       // "100 Continue" has been sent for this request
  bool waits_for_body_ = false;  // the handler waits for more of it
  RequestParser::Stage timed_stage_ = RequestParser::Stage::idle;
  SteadyTime since_;  // the start of the current timeout

  std::shared_ptr<ExchangeState> exchange_;
  std::map<ExchangeState::TimerId, Timer> timers_;
  bool keep_alive_ = true;
  bool is_head_ = false;
  bool streaming_ = false;           // the response is a stream
  Framing framing_ = Framing::none;  // of the stream
  std::uint64_t stream_left_ = 0;    // for Framing::length

  std::string head_;
  std::string body_;
  std::string_view tail_;
  std::size_t sent_ = 0;              // of the batch: head_, body_, tail_
  bool writing_ = false;              // waiting until the socket is writable
  std::size_t waited_at_ = SIZE_MAX;  // `sent_` when the wait began
  bool last_batch_ = false;           // it completes the response
};

}  // namespace divan::http
