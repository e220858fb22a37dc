// Untrusted text in URLs and headers: decoding inverts encoding.
#include <cstdlib>

#include "divan/base/error.h"
#include "divan/http/basic_auth.h"
#include "divan/http/etag.h"
#include "divan/http/message.h"
#include "divan/http/url.h"

namespace http = divan::http;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (http::percent_decode(http::percent_encode(text)) != text) abort();
  try {
    std::string again;
    const auto parameters = http::parse_query(text);
    for (const auto& [name, value] : parameters) {
      again += "&" + http::percent_encode(name) + "=" + http::percent_encode(value);
    }
    if (http::parse_query(again) != parameters) abort();
  } catch (const divan::Error& error) {
    if (error.status() != 400) abort();
  }
  try {
    if (const auto credentials = http::parse_basic(text)) {
      if (http::parse_basic(http::basic_authorization(*credentials)) != credentials) abort();
    }
  } catch (const divan::Error& error) {
    if (error.status() != 400) abort();
  }
  const http::Request request("GET", text);
  if (request.path().empty() || request.path().size() + request.query().size() > text.size() + 1) abort();
  if (text.find_first_of("\"*") == text.npos && http::if_none_match(text, "\"1-a\"")) abort();
  return 0;
}
