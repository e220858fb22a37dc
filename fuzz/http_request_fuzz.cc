// Requests of arbitrary bytes: the parser's result must not depend on how they are split, nor on whether
// bodies are streamed, and it never reads beyond its input.
#include <cstdlib>
#include <optional>

#include "divan/http/parser.h"

namespace {

using divan::http::ParserLimits;
using divan::http::Request;
using divan::http::RequestParser;

constexpr std::size_t kMaxHeaderBytes = 512;
constexpr std::size_t kMaxBodyBytes = 100;

ParserLimits limits(bool streams) {
  ParserLimits limits{
      .max_header_bytes = kMaxHeaderBytes, .max_target_bytes = 64, .max_body_bytes = kMaxBodyBytes};
  if (streams) limits.streamed_body = [](const Request&) { return std::optional(kMaxBodyBytes); };
  return limits;
}

struct Outcome {
  std::string requests;
  int status = 0;
  RequestParser::Stage stage = RequestParser::Stage::idle;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void describe(std::string& out, const Request& request) {
  out.append(request.method()).append(" ").append(request.path()).append("?").append(request.query());
  for (const auto* name : {"host", "x", "content-length"})
    out.append(request.header(name).value_or("-")).append("\n");
  out.append(request.body()).append("\n");
}

// Takes what is complete. Returns false if there is nothing more to take.
bool take(RequestParser& parser, std::optional<Request>& streamed, Outcome& outcome) {
  const bool is_done = parser.stage() == RequestParser::Stage::done;
  if (!is_done && parser.stage() != RequestParser::Stage::body) return false;
  if (!parser.is_streamed()) {
    if (is_done) describe(outcome.requests, parser.take());
    return is_done;
  }
  const bool is_new = !streamed;
  if (is_new) {
    streamed = parser.take();
  } else {
    streamed->append_body(parser.take_body());
    if (is_done) describe(outcome.requests, *std::exchange(streamed, std::nullopt));
  }
  return is_new || is_done;
}

// Like a connection: a buffer of the maximum size of a head, `step` bytes per read, and as many of a streamed
// body at a time.
Outcome parse(std::string_view bytes, std::size_t step, bool streams = false) {
  Outcome outcome;
  RequestParser parser(limits(streams));
  std::optional<Request> streamed;
  std::size_t used = 0, known = 0;
  try {
    while (known < bytes.size()) {
      const auto space = kMaxHeaderBytes - (known - used);
      known += std::min({step, space, bytes.size() - known});
      for (;;) {
        const auto taken = parser.feed(bytes.substr(used, known - used), step);
        if (taken > known - used) abort();
        used += taken;
        if (!take(parser, streamed, outcome) && taken == 0) break;
      }
      if (known - used >= kMaxHeaderBytes) abort();
    }
    outcome.stage = parser.stage();
  } catch (const divan::Error& error) {
    outcome.status = error.status();
    if (outcome.status < 400 || outcome.status > 599) abort();
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto bytewise = parse(bytes, 1);
  for (const std::size_t step : {std::size_t{7}, std::size_t{100}, size}) {
    if (step > 0 && parse(bytes, step) != bytewise) abort();
    if (step > 0 && parse(bytes, step, true) != bytewise) abort();
  }
  return 0;
}
