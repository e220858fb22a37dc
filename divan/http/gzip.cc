#include "divan/http/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "divan/base/check.h"
#include "divan/base/error.h"

namespace divan::http {
namespace {

Error malformed(const char* why) {
  return bad_request(
      fmt::format("The body is not valid gzip, though its Content-Encoding is gzip: {}.", why));
}

}  // namespace

struct Gunzip::State {
  State() {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  z_stream stream{};
  std::string_view input;
  bool in_member = false;  // a gzip member has begun and not ended
  std::array<char, 64 << 10> piece;
};

Gunzip::Gunzip() : state_(std::make_unique<State>()) {}
Gunzip::~Gunzip() = default;

void Gunzip::feed(std::string_view compressed) {
  DIVAN_CHECK(state_->input.empty(), "{} compressed bytes are dropped", state_->input.size());
  state_->input = compressed;
}

std::string_view Gunzip::next() {
  z_stream& stream = state_->stream;
  for (;;) {
    if (state_->input.empty() && !state_->in_member) return {};
    const auto given = std::min<std::size_t>(state_->input.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(state_->input.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(state_->piece.data());
    stream.avail_out = static_cast<uInt>(state_->piece.size());
    state_->in_member = true;
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_BUF_ERROR) return {};  // nothing was left to be done
    if (result != Z_OK && result != Z_STREAM_END)
      throw malformed(stream.msg != nullptr ? stream.msg : "its data is corrupt");
    DIVAN_CHECK(stream.avail_in <= given && stream.avail_out <= state_->piece.size(),
                "zlib has written beyond its buffer");
    state_->input.remove_prefix(given - stream.avail_in);
    if (result == Z_STREAM_END) {
      state_->in_member = false;
      inflateReset(&stream);
    }
    const std::size_t size = state_->piece.size() - stream.avail_out;
    if (size > 0) return {state_->piece.data(), size};
  }
}

void Gunzip::check_complete() const {
  if (state_->in_member) throw malformed("it is truncated");
}

std::string gunzip(std::string_view compressed, std::size_t max_bytes) {
  std::string out;
  Gunzip body;
  body.feed(compressed);
  for (auto piece = body.next(); !piece.empty(); piece = body.next()) {
    if (piece.size() > max_bytes - out.size())
      throw Error(
          413, "too_large",
          fmt::format("The request entity is too large: uncompressed it has more than {} bytes.", max_bytes));
    out += piece;
  }
  body.check_complete();
  return out;
}

}  // namespace divan::http
