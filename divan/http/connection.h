// One client's connection, from accept to close.
//
// It goes round: reading a request, answering it (the handler has the exchange), reading the next one from
// what the client has sent meanwhile. A read is under way nearly always, also while a request is answered, so
// that a client that leaves is noticed; only a client that has sent a full buffer ahead is not read from.
// Output is one batch at a time: the head, a body that is never copied, a chunk's end, gathered into one
// write; what the handler adds in the meantime gathers in the exchange's state and is the next batch.
#pragma once

#include <map>
#include <memory>

#include "divan/http/exchange_state.h"
#include "divan/http/input_buffer.h"
#include "divan/http/net.h"
#include "divan/http/parser.h"
#include "divan/http/serializer.h"

namespace divan::http {

class Loop;

/// Lives on its loop's io thread: everything is called there.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, Loop& loop);

  void start();
  /// The exchange's state has something new.
  void service();
  /// Closes or answers 408 if the client has been waited for too long.
  void check_timeouts(SteadyTime now);
  /// Whether the client is waited for.
  bool is_timed() const {
    return writing_ || phase_ == Phase::reading || phase_ == Phase::lingering || is_half_closed();
  }
  /// Closes if no request is under way; otherwise the answer will be the last one.
  void stop();
  /// Closes at once; what the client has not read is lost to it.
  void abort();

  /// The loop's: where in its table this connection stands.
  std::size_t index = 0;

 private:
  enum class Phase {
    reading,    ///< a request, or waiting for one
    answering,  ///< exchange_ is at the handler
    refusing,   ///< sending the answer to a request that was not understood
    lingering,  ///< all is sent and our side has ended; reading until the client ends, too
    closed,
  };

  // Input (connection.cc).
  void read();
  void on_read(const ErrorCode& ec, std::size_t size);
  void on_input_end();
  void process();
  void process_input();
  void dispatch();
  void refuse(const Error& error);
  void finish_exchange();
  void end_output();
  void close();
  void touch();
  // The client has ended its side, and its answer is not complete.
  bool is_half_closed() const { return phase_ == Phase::answering && input_ended_; }

  // Output (connection_output.cc).
  void set_timers(ExchangeState::Work& work);
  void pump(ExchangeState::Work work);
  bool stage(ExchangeState::Work work);
  void stage_answer(Response response);
  void send_continue();
  void stage_stream_head(const Response& response);
  bool stage_data(std::string data, bool ended);
  void stage_head(const Response& response, Framing framing, std::uint64_t length);
  void clear_batch();
  bool flush();
  void count_sent(std::size_t size);
  void wait_until_writable();
  void on_batch_sent();

  Socket socket_;
  Loop& loop_;
  std::string peer_;
  Phase phase_ = Phase::reading;

  InputBuffer input_;
  RequestParser parser_;
  bool reading_ = false;      // a read is under way
  bool input_ended_ = false;  // the client has ended its side
  bool processing_ = false;   // process() is on the stack
  bool continued_ = false;    // "100 Continue" has been sent for this request
  RequestParser::Stage timed_stage_ = RequestParser::Stage::idle;
  SteadyTime since_;  // what the present timeout counts from

  std::shared_ptr<ExchangeState> exchange_;
  std::map<ExchangeState::TimerId, Timer> timers_;
  bool keep_alive_ = true;
  bool is_head_ = false;
  bool streaming_ = false;           // the answer is a stream
  Framing framing_ = Framing::none;  // of the stream
  std::uint64_t stream_left_ = 0;    // for Framing::length

  std::string head_;
  std::string body_;
  std::string_view tail_;
  std::size_t sent_ = 0;     // of the batch: head_, body_, tail_
  bool writing_ = false;     // waiting for the socket to take more of the batch
  bool last_batch_ = false;  // it completes the answer
};

}  // namespace divan::http
