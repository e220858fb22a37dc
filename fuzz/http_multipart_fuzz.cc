// A multipart body from a client: an error, or parts that lie in it. The first line is the boundary.
#include "divan/http/multipart.h"

#include "fuzz/check.h"

namespace http = divan::http;
using divan::fuzz::answers;
using divan::fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  const auto line = std::min(text.find('\n'), text.size());
  const std::string_view boundary = text.substr(0, line), body = text.substr(std::min(line + 1, text.size()));
  http::field_parameter(body, "boundary");
  std::vector<http::BodyPart> parts;
  if (!answers(400, [&] { parts = http::parse_multipart(body, boundary); })) return 0;
  const char* after = body.data();
  for (const auto& part : parts) {
    check(part.body.data() >= after && part.body.data() + part.body.size() <= body.data() + body.size());
    check(part.body.find("\r\n--" + std::string(boundary) + "--") == part.body.npos);
    after = part.body.data() + part.body.size();
    part.file_name();
  }
  return 0;
}
