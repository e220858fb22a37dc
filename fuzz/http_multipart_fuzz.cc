// A multipart body from a client: an error, or parts, which do not depend on how the body is cut into pieces.
// The first line is the boundary; the first byte of the body is the size of the pieces.
#include "divan/http/multipart.h"

#include "fuzz/check.h"

namespace http = divan::http;
using divan::fuzz::answers;
using divan::fuzz::check;
using Step = http::MultipartReader::Step;

namespace {

// What a reader returns, as a text.
std::string read(std::string_view body, std::string_view boundary, std::size_t piece_bytes) {
  std::string out;
  const bool is_valid = answers(400, [&] {
    http::MultipartReader reader(boundary);
    for (;;) {
      const auto step = reader.next();
      if (step == Step::end) return;
      if (step == Step::part) {
        out += "part\n";
        for (const auto& [name, value] : reader.headers().fields) out += name + "=" + value + "\n";
        reader.headers().file_name();
      }
      if (step == Step::data) {
        check(!reader.data().empty());
        out += reader.data();
      }
      if (step == Step::part_end) out += "\nend\n";
      if (step != Step::needs_input) continue;
      if (body.empty()) reader.check_complete();
      reader.feed(body.substr(0, piece_bytes));
      body.remove_prefix(std::min(piece_bytes, body.size()));
    }
  });
  return is_valid ? out : "invalid";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  const auto line = std::min(text.find('\n'), text.size());
  const std::string_view boundary = text.substr(0, line), body = text.substr(std::min(line + 1, text.size()));
  http::field_parameter(body, "boundary");
  const auto piece = body.empty() ? 1 : std::size_t{static_cast<unsigned char>(body.front())} + 1;
  check(read(body, boundary, piece) == read(body, boundary, SIZE_MAX));
  return 0;
}
