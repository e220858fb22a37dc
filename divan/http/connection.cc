#include "divan/http/connection.h"

#include <fmt/format.h>
#include <netinet/tcp.h>

#include <climits>
#include <utility>

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/http/body_reader.h"

namespace divan::http {
namespace {

Error request_timeout() { return {408, "timeout", "The request did not arrive in time."}; }

Error half_close_timeout(std::chrono::milliseconds limit) {
  return {408, "timeout",
          fmt::format("The client ended its side of the connection, and there was no response within {} ms.",
                      limit.count())};
}

// Number of a client's requests that are handled before other clients are served, if all are responded to at
// once.
constexpr int kRequestsAtOnce = 16;

}  // namespace

Connection::Connection(Socket socket, ConnectionOwner& loop)
    : socket_(std::move(socket)),
      loop_(loop),
      parser_({loop.options().max_header_bytes, loop.options().max_target_bytes,
               loop.options().max_body_bytes, loop.options().streamed_body}) {}

void Connection::start() {
  ErrorCode ec;
  const auto remote = socket_.remote_endpoint(ec);
  if (!ec) peer_ = remote.address().to_string();
  if (!ec) socket_.set_option(Tcp::no_delay(true), ec);
  if (!ec) socket_.set_option(Socket::keep_alive(true), ec);
  // Without this, unacknowledged heartbeats to a client that is cut off would end the connection only after
  // the system's default of about 15 minutes; with it, after send_timeout.
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  const auto patience = std::min<std::int64_t>(loop_.options().send_timeout.count(), INT_MAX);
  if (!ec) socket_.set_option(UserTimeout(static_cast<int>(patience)), ec);
  if (!ec) socket_.non_blocking(true, ec);
  if (ec) return close();
  touch();
  read();
}

// Restarts the current timeout.
void Connection::touch() {
  since_ = std::chrono::steady_clock::now();
  loop_.time(*this);
}

void Connection::read() {
  if (reading_ || input_ended_ || phase_ == Phase::closed) return;
  const bool idle =
      !waits_for_body_ && (phase_ != Phase::reading || parser_.stage() == RequestParser::Stage::idle);
  // Thousands of connections may be idle: these wait without a buffer.
  if (idle && input_.empty()) {
    input_.release();
    reading_ = true;
    socket_.async_wait(Socket::wait_read,
                       [self = shared_from_this()](const ErrorCode& ec) { self->on_readable(ec); });
    return;
  }
  // What nobody waits for yet of a streamed body stays in the socket: there may be thousands of uploads.
  const bool is_ahead = phase_ == Phase::responding && has_body_left() && !waits_for_body_;
  if (!input_.ensure_space(is_ahead ? InputBuffer::kSmall : loop_.options().max_header_bytes)) return;
  reading_ = true;
  auto space = input_.space();
  if (waits_for_body_)
    space = space.first(std::min(space.size(), std::max(exchange_->wanted_body(), InputBuffer::kSmall)));
  socket_.async_read_some(
      asio::buffer(space.data(), space.size()),
      [self = shared_from_this()](const ErrorCode& ec, std::size_t size) { self->on_read(ec, size); });
}

void Connection::on_readable(const ErrorCode& ec) {
  if (ec || phase_ == Phase::closed) return on_read(ec, 0);
  input_.ensure_space(loop_.options().max_header_bytes);
  const auto space = input_.space();
  ErrorCode failure;
  const auto size = socket_.read_some(asio::buffer(space.data(), space.size()), failure);
  on_read(failure == asio::error::would_block ? ErrorCode() : failure, size);
}

void Connection::on_read(const ErrorCode& ec, std::size_t size) {
  DIVAN_CHECK(reading_, "a read that has not begun ends");
  reading_ = false;
  if (phase_ == Phase::closed) return;
  if (ec == asio::error::eof) {
    input_ended_ = true;
    return on_input_end();
  }
  if (ec) return close();
  input_.commit(size);
  if (phase_ == Phase::reading) return process();
  if (phase_ != Phase::responding) input_.clear();
  if (waits_for_body_) {
    touch();
    return read_body();
  }
  read();
}

void Connection::on_input_end() {
  switch (phase_) {
    case Phase::reading:
      if (paused_) return;  // process() continues
      if (parser_.stage() == RequestParser::Stage::idle) return close();
      return refuse(bad_request("The request is truncated."));
    case Phase::responding:
      if (waits_for_body_) return close();
      touch();
      return exchange_->half_close();
    case Phase::lingering: return close();
    case Phase::refusing:
    case Phase::closed: return;
  }
}

void Connection::process() {
  if (processing_) return;
  processing_ = true;
  paused_ = false;
  try {
    process_input();
  } catch (const Error& error) { refuse(error); } catch (const std::exception& error) {
    log::error("An HTTP connection failed: {}", error.what());
    abort();
  }
  processing_ = false;
  if (paused_) return;
  if (phase_ == Phase::reading) {
    const auto stage = parser_.stage();
    if (stage == RequestParser::Stage::body || stage != timed_stage_) touch();
    timed_stage_ = stage;
    if (input_ended_) return on_input_end();
  }
  read();
}

void Connection::process_input() {
  for (int requests = 0; phase_ == Phase::reading;) {
    // A client that sends many requests at once must not hold up others.
    if (requests == kRequestsAtOnce && !input_.data().empty()) {
      paused_ = true;
      return asio::post(socket_.get_executor(), [self = shared_from_this()] { self->process(); });
    }
    input_.consume(parser_.feed(input_.data()));
    if (parser_.stage() == RequestParser::Stage::done ||
        (parser_.stage() == RequestParser::Stage::body && parser_.is_streamed())) {
      ++requests;
      dispatch();
    } else {
      if (!continued_ && parser_.wants_continue()) send_continue();
      return;
    }
  }
}

void Connection::dispatch() {
  DIVAN_CHECK(phase_ == Phase::reading && exchange_ == nullptr, "a request begins within another one");
  keep_alive_ = parser_.keep_alive();
  auto request = parser_.take();
  request.set_peer(peer_);
  is_head_ = request.method() == "HEAD";
  exchange_ = std::make_shared<ExchangeState>(std::move(request), loop_.mailbox(),
                                              loop_.options().max_unsent_bytes, has_body_left());
  exchange_->connection = this;
  exchange_->is_tls = socket_.is_tls();
  phase_ = Phase::responding;
  if (input_ended_) touch();
  {
    const auto exchange = std::make_shared<Exchange>(exchange_);
    try {
      loop_.handler()(exchange);
    } catch (const Error& error) {
      if (!exchange->responded()) exchange->fail(error);
    } catch (const std::exception& error) {
      log::error("{} {}: {}", exchange->request().method(), exchange->request().target(), error.what());
      if (!exchange->responded())
        exchange->respond(error_response(internal_error("The request failed; see the server's log.")));
    }
  }
  service();
}

// Passes as much of a streamed body on as the handler waits for.
void Connection::read_body() {
  while (has_body_left()) {
    const bool waited = std::exchange(waits_for_body_, exchange_->wanted_body() > 0);
    if (!waits_for_body_) break;
    if (!waited) touch();
    try {
      const auto used = parser_.feed(input_.data(), exchange_->wanted_body());
      input_.consume(used);
      if (used == 0) break;
      const bool is_last = parser_.stage() == RequestParser::Stage::done;
      exchange_->add_body(parser_.take_body(), is_last);
    } catch (const BodyError& error) {
      waits_for_body_ = false;
      return exchange_->fail_body(error);
    }
  }
  if (!has_body_left()) waits_for_body_ = false;
  if (waits_for_body_ && input_ended_) return close();
  if (waits_for_body_ && !continued_ && parser_.wants_continue()) send_continue();
  if (phase_ == Phase::responding) read();
}

void Connection::refuse(const Error& error) {
  phase_ = Phase::refusing;
  input_.clear();
  if (writing_) return abort();
  keep_alive_ = false;
  is_head_ = false;
  streaming_ = false;
  clear_batch();
  stage_response(error_response(error));
  if (flush()) end_output();
}

void Connection::finish_exchange() {
  DIVAN_CHECK(phase_ == Phase::responding && exchange_ != nullptr, "a response that has not begun ends");
  DIVAN_CHECK(sent_ == batch_bytes(), "{} of {} bytes of a response were sent", sent_, batch_bytes());
  const auto exchange = std::exchange(exchange_, nullptr);
  exchange->connection = nullptr;
  timers_.clear();
  exchange->finish();
  streaming_ = false;
  waits_for_body_ = false;
  clear_batch();
  if (!keep_alive_ || loop_.stopping()) return end_output();
  DIVAN_CHECK(!has_body_left(), "a request begins within the body of another one");
  phase_ = Phase::reading;
  continued_ = false;
  timed_stage_ = RequestParser::Stage::idle;
  touch();
  process();
}

void Connection::end_output() {
  // If the socket is closed while received bytes are unread, the kernel sends a reset, and the client
  // discards the response if it has not read it yet. So the client gets time to read it and to close first.
  if (input_ended_ || (phase_ == Phase::responding && input_.empty() && !has_body_left())) return close();
  phase_ = Phase::lingering;
  touch();
  input_.clear();
  ErrorCode ec;
  socket_.shutdown(Socket::shutdown_send, ec);
  read();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  const auto self = shared_from_this();
  phase_ = Phase::closed;
  timers_.clear();
  ErrorCode ec;
  socket_.close(ec);
  if (const auto exchange = std::exchange(exchange_, nullptr)) {
    exchange->connection = nullptr;
    exchange->lose();
  }
  loop_.remove(*this);
}

void Connection::abort() {
  ErrorCode ec;
  socket_.set_option(Socket::linger(true, 0), ec);
  close();
}

void Connection::stop() {
  const bool idle = phase_ == Phase::reading && parser_.stage() == RequestParser::Stage::idle;
  if (idle) close();
}

void Connection::check_timeouts(SteadyTime now) {
  const auto& options = loop_.options();
  const auto waited = now - since_;
  if (writing_) {
    if (waited >= options.send_timeout) abort();
    return;
  }
  if (phase_ == Phase::lingering && waited >= options.linger_timeout) return close();
  if (is_half_closed() && waited >= options.half_close_timeout) {
    if (exchange_->responded()) return abort();
    return refuse(half_close_timeout(options.half_close_timeout));
  }
  if (waits_for_body_ && waited >= options.body_timeout) {
    waits_for_body_ = false;
    return exchange_->fail_body(request_timeout());
  }
  if (phase_ != Phase::reading) return;
  switch (parser_.stage()) {
    case RequestParser::Stage::idle:
      if (waited >= options.idle_timeout) close();
      return;
    case RequestParser::Stage::head:
      if (waited >= options.head_timeout) refuse(request_timeout());
      return;
    case RequestParser::Stage::body:
      if (waited >= options.body_timeout) refuse(request_timeout());
      return;
    case RequestParser::Stage::done: return;
  }
}

}  // namespace divan::http
