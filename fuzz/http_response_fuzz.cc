// Responses of arbitrary bytes, parsed by the client: a result that does not depend on how they are split, or
// an error.
#include <cstdlib>

#include "divan/http/parser.h"

namespace {

using divan::http::ParserLimits;
using divan::http::ResponseParser;

const ParserLimits kLimits{.max_header_bytes = 512, .max_body_bytes = 1000};

struct Outcome {
  std::string text;
  bool failed = false;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome parse(std::string_view bytes, std::size_t step) {
  std::string body;
  ResponseParser parser(kLimits, false, [&](std::string_view part) { body += part; });
  std::size_t used = 0, known = 0;
  try {
    while (known < bytes.size() && !parser.done()) {
      known += std::min(step, bytes.size() - known);
      const auto taken = parser.feed(bytes.substr(used, known - used));
      if (taken > known - used) abort();
      used += taken;
    }
    if (!parser.done()) parser.feed_end();
  } catch (const divan::Error& error) {
    if (error.status() != 502) abort();
    return {{}, true};
  }
  auto text = std::to_string(parser.status());
  for (const auto& [name, value] : parser.headers()) text.append(name).append(":").append(value).append("\n");
  return {text + body, false};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 400));
  if (parse(bytes, 1) != parse(bytes, 1000)) abort();
  return 0;
}
