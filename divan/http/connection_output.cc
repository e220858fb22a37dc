// A connection's output: from the exchange's state to the socket, a batch at a time.
#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/http/connection.h"
#include "divan/http/serializer.h"

namespace divan::http {
namespace {

// The bytes that a connection may send before other connections of its io thread are served.
constexpr std::size_t kFairShare = 1 << 20;

// A longer delay would overflow the clock's time_point.
constexpr std::chrono::hours kLongestDelay{24 * 365};

bool has_no_body(int status) { return status == 204 || status == 304; }

}  // namespace

void Connection::service() {
  if (phase_ != Phase::responding) return;
  auto work = exchange_->take(!writing_);
  if (input_ended_) exchange_->half_close();
  pump(std::move(work));
  if (phase_ == Phase::responding && has_body_left()) read_body();
}

void Connection::pump(ExchangeState::Work work) {
  for (;;) {
    set_timers(work);
    if (work.cut) return abort();
    if (writing_) return;
    if (!work.response && work.data.empty() && !work.ended) {
      if (streaming_) release_batch();
      return exchange_->drained();
    }
    if (input_ended_) touch();  // there is output: restart half_close_timeout
    if (!stage(std::move(work))) return abort();
    if (!flush()) return;
    if (last_batch_) return finish_exchange();
    work = exchange_->take(true);
  }
}

void Connection::set_timers(ExchangeState::Work& work) {
  for (const auto& [id, delay] : work.new_timers) {
    const auto [added, is_new] = timers_.emplace(id, socket_.get_executor());
    DIVAN_CHECK(is_new, "two timers have the id {}", id);
    auto& timer = added->second;
    timer.expires_after(std::min<std::chrono::milliseconds>(delay, kLongestDelay));
    timer.async_wait([self = shared_from_this(), exchange = exchange_, id = id](const ErrorCode& ec) {
      if (ec) return;
      // Another exchange's timers may have the same ids.
      if (self->exchange_ == exchange) self->timers_.erase(id);
      exchange->run_timer(id);
    });
  }
  for (const auto id : work.cancelled_timers) timers_.erase(id);
}

bool Connection::stage(ExchangeState::Work work) {
  DIVAN_CHECK(!writing_, "a batch is replaced before it is sent");
  clear_batch();
  streaming_ = work.stream;
  if (!streaming_) {
    DIVAN_CHECK(work.response, "a response without a head");
    stage_response(std::move(*work.response));
    return true;
  }
  if (work.response) stage_stream_head(*work.response);
  return stage_data(std::move(work.data), work.ended);
}

void Connection::stage_response(Response response) {
  if (response.status == 205) response.body.clear();  // RFC 9110, 15.3.6
  auto length = std::uint64_t{response.body.size()};
  if (is_head_) length = own_content_length(response).value_or(length);
  const bool bare = has_no_body(response.status);
  stage_head(response, bare ? Framing::none : Framing::length, length);
  if (!is_head_ && !bare) body_ = std::move(response.body);
  last_batch_ = true;
}

void Connection::stage_stream_head(const Response& response) {
  const auto length = own_content_length(response);
  if (has_no_body(response.status)) {
    framing_ = Framing::none;
  } else if (length) {
    framing_ = Framing::length;
  } else if (exchange_->request.minor_version() == 0) {
    framing_ = Framing::until_close;
    keep_alive_ = false;
  } else {
    framing_ = Framing::chunked;
  }
  stream_left_ = length.value_or(0);
  stage_head(response, framing_, stream_left_);
  if (is_head_) framing_ = Framing::none;
}

// Returns false if the stream's length differs from its Content-Length.
bool Connection::stage_data(std::string data, bool ended) {
  last_batch_ = ended;
  switch (framing_) {
    case Framing::none: exchange_->sent(data.size()); return true;
    case Framing::until_close: body_ = std::move(data); return true;
    case Framing::length:
      if (data.size() > stream_left_ || (ended && data.size() < stream_left_)) {
        log::error("The length of the response to {} {} differs from its Content-Length.",
                   exchange_->request.method(), exchange_->request.path());
        return false;
      }
      stream_left_ -= data.size();
      body_ = std::move(data);
      return true;
    case Framing::chunked: break;
  }
  constexpr std::string_view kChunkEnd = "\r\n", kLastChunk = "0\r\n\r\n", kBoth = "\r\n0\r\n\r\n";
  if (!data.empty()) {
    append_chunk_size(head_, data.size());
    tail_ = ended ? kBoth : kChunkEnd;
  } else if (ended) {
    tail_ = kLastChunk;
  }
  body_ = std::move(data);
  return true;
}

void Connection::stage_head(const Response& response, Framing framing, std::uint64_t length) {
  // The rest of a body that the handler has not read would be taken for a request.
  keep_alive_ = keep_alive_ && !loop_.stopping() && !has_body_left();
  HeadFraming head{framing, length, {}, loop_.own_fields()};
  if (!keep_alive_) {
    head.connection = "close";
  } else if (exchange_ && exchange_->request.minor_version() == 0) {
    head.connection = "keep-alive";
  }
  append_head(head_, response, head);
}

void Connection::send_continue() {
  continued_ = true;
  if (writing_) return;
  clear_batch();
  head_ = "HTTP/1.1 100 Continue\r\n\r\n";
  flush();
}

void Connection::clear_batch() {
  head_.clear();
  body_ = {};
  tail_ = {};
  sent_ = 0;
  waited_at_ = SIZE_MAX;
  last_batch_ = false;
}

// Frees the memory of a batch that was sent: a stream may wait for hours for the next one.
void Connection::release_batch() {
  clear_batch();
  std::string().swap(head_);
  std::string().swap(body_);
}

// Returns true if all is sent. Otherwise sending continues when the socket is writable, or the connection was
// closed.
bool Connection::flush() {
  const auto total = batch_bytes();
  for (std::size_t share = 0; sent_ < total;) {
    if (share >= kFairShare) {
      wait_until_writable();
      return false;
    }
    std::array<asio::const_buffer, 3> batch{asio::buffer(head_), asio::buffer(body_),
                                            asio::const_buffer(tail_.data(), tail_.size())};
    auto skip = sent_;
    for (auto& part : batch) {
      const auto skipped = std::min(skip, part.size());
      part += skipped;
      skip -= skipped;
    }
    ErrorCode ec;
    const auto size = socket_.write_some(batch, ec);
    if (ec == asio::error::would_block) {
      wait_until_writable();
      return false;
    }
    if (ec) {
      close();
      return false;
    }
    count_sent(size);
    share += size;
  }
  return true;
}

void Connection::count_sent(std::size_t size) {
  const auto body_sent = [this] {
    return std::clamp(sent_, head_.size(), head_.size() + body_.size()) - head_.size();
  };
  const auto before = body_sent();
  DIVAN_CHECK(size <= batch_bytes() - sent_, "{} bytes were sent, and {} were left", size,
              batch_bytes() - sent_);
  sent_ += size;
  if (streaming_) exchange_->sent(body_sent() - before);
}

void Connection::wait_until_writable() {
  writing_ = true;
  // A socket that is writable again takes nothing if TLS has to read first.
  if (std::exchange(waited_at_, sent_) != sent_) touch();
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const ErrorCode& ec) {
    if (self->phase_ == Phase::closed) return;
    if (ec) return self->close();
    self->writing_ = false;
    if (self->flush()) self->on_batch_sent();
  });
}

void Connection::on_batch_sent() {
  if (phase_ == Phase::refusing) return end_output();
  if (phase_ != Phase::responding) return;
  if (last_batch_) return finish_exchange();
  service();
}

}  // namespace divan::http
