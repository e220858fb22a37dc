// Requests of arbitrary bytes: the parser's result must not depend on how they are split, and it never reads
// beyond its input.
#include <cstdlib>

#include "divan/http/parser.h"

namespace {

using divan::http::ParserLimits;
using divan::http::Request;
using divan::http::RequestParser;

constexpr ParserLimits kLimits{.max_header_bytes = 512, .max_target_bytes = 64, .max_body_bytes = 100};

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

// Like a connection: a buffer of the maximum size of a head, `step` bytes per read.
Outcome parse(std::string_view bytes, std::size_t step) {
  Outcome outcome;
  RequestParser parser(kLimits);
  std::size_t used = 0, known = 0;
  try {
    while (known < bytes.size()) {
      const auto space = kLimits.max_header_bytes - (known - used);
      known += std::min({step, space, bytes.size() - known});
      for (;;) {
        const auto taken = parser.feed(bytes.substr(used, known - used));
        if (taken > known - used) abort();
        used += taken;
        if (parser.stage() != RequestParser::Stage::done) break;
        describe(outcome.requests, parser.take());
      }
      if (known - used >= kLimits.max_header_bytes) abort();
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
  }
  return 0;
}
