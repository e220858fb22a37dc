#include "divan/http/body_reader.h"

#include <algorithm>
#include <charconv>

#include "divan/base/check.h"

namespace divan::http {
namespace {

BodyError too_large() { return {413, "too_large", "the request entity is too large"}; }
BodyError malformed(const char* reason = "The chunked body is malformed.") {
  return {400, "bad_request", reason};
}

// Field text: no control characters except tabs.
bool is_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
  });
}

}  // namespace

BodyReader::BodyReader(Framing framing, std::uint64_t length, std::uint64_t max_bytes,
                       std::size_t max_line_bytes)
    : framing_(framing), allowed_(max_bytes), max_line_bytes_(max_line_bytes) {
  switch (framing) {
    case Framing::none: return;
    case Framing::length:
      if (length > max_bytes) throw too_large();
      left_ = length;
      if (length > 0) part_ = Part::data;
      return;
    case Framing::chunked: part_ = Part::chunk_size; return;
    case Framing::until_close:
      // One byte over the limit, so that reading it fails.
      left_ = max_bytes + (max_bytes == ~std::uint64_t{0} ? 0 : 1);
      part_ = Part::data;
      return;
  }
}

void BodyReader::use_data(std::uint64_t size) {
  if (size > allowed_) throw too_large();
  DIVAN_CHECK(size <= left_, "{} bytes of a body are consumed, and {} are left", size, left_);
  allowed_ -= size;
  left_ -= size;
  if (left_ == 0) part_ = framing_ == Framing::chunked ? Part::chunk_end : Part::done;
}

// Returns the line's size, 0 if it is not complete.
std::size_t BodyReader::feed_line(std::string_view bytes) {
  if (part_ == Part::chunk_end && !std::string_view("\r\n").starts_with(bytes.substr(0, 2)))
    throw malformed();
  DIVAN_CHECK(scanned_ <= bytes.size(), "{} of {} bytes were scanned", scanned_, bytes.size());
  const auto end = bytes.find('\n', scanned_);
  const bool complete = end != std::string_view::npos;
  const auto size = complete ? end + 1 : bytes.size();
  // The reader's buffer need not be larger than the limit, so a line that fills the buffer is rejected before
  // its end arrives.
  if (trailer_bytes_ + size + (complete ? 0 : 1) > max_line_bytes_) {
    throw malformed("A chunk's header or the trailer is too large.");
  }
  scanned_ = complete ? 0 : size;
  if (!complete) return 0;
  if (size < 2 || bytes[size - 2] != '\r') throw malformed();
  const auto line = bytes.substr(0, size - 2);
  if (!is_text(line)) throw malformed();
  switch (part_) {
    case Part::chunk_size: read_chunk_size(line); break;
    case Part::chunk_end: part_ = Part::chunk_size; break;
    case Part::trailer:
      trailer_bytes_ += size;
      if (line.empty()) part_ = Part::done;
      break;
    case Part::data:
    case Part::done: break;
  }
  return size;
}

// chunk-size [ chunk-ext ] (RFC 9112, section 7.1). Extensions are ignored.
void BodyReader::read_chunk_size(std::string_view line) {
  const auto* end = line.data() + line.size();
  const auto digits = std::from_chars(line.data(), end, left_, 16);
  if (digits.ec == std::errc::result_out_of_range) throw too_large();
  if (digits.ec != std::errc()) throw malformed();
  const std::string_view extension(digits.ptr, static_cast<std::size_t>(end - digits.ptr));
  const auto begin = extension.find_first_not_of(" \t");
  if (!extension.empty() && (begin == std::string_view::npos || extension[begin] != ';')) throw malformed();
  if (left_ > allowed_) throw too_large();
  part_ = left_ > 0 ? Part::data : Part::trailer;
}

}  // namespace divan::http
