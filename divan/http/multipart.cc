#include "divan/http/multipart.h"

#include <fmt/core.h>

#include "divan/base/error.h"
#include "divan/http/field_list.h"
#include "divan/http/message.h"

namespace divan::http {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kMaxFields = 100;
// Of a field, or of the white space after a delimiter.
constexpr std::size_t kMaxLineBytes = 16 << 10;

Error malformed(std::string_view what) {
  return bad_request(fmt::format("The multipart body is malformed: {}.", what));
}

Error too_long() { return malformed("a line is too long"); }

// Removes a token or a quoted string from the front, and returns its text.
std::string take_value(std::string_view& rest) {
  std::string value;
  if (!rest.starts_with('"')) {
    const auto end = std::min(rest.find(';'), rest.size());
    value = trim(rest.substr(0, end));
    rest.remove_prefix(end);
    return value;
  }
  std::size_t i = 1;
  for (; i < rest.size() && rest[i] != '"'; ++i) {
    if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
    value += rest[i];
  }
  rest.remove_prefix(std::min(i + 1, rest.size()));
  return value;
}

// As browsers write names of files in forms (https://html.spec.whatwg.org/#multipart-form-data), and
// backslashes as in RFC 2822.
std::string quoted_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\r' || c == '\n' || c == '\0') {
      out += fmt::format("%{:02X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

std::optional<std::string_view> PartHeaders::find(std::string_view name) const {
  for (const auto& [given, value] : fields) {
    if (equal_ignoring_case(given, name)) return value;
  }
  return std::nullopt;
}

std::optional<std::string> PartHeaders::file_name() const {
  const auto disposition = find("Content-Disposition");
  return disposition ? field_parameter(*disposition, "filename") : std::nullopt;
}

std::optional<std::string> field_parameter(std::string_view field, std::string_view name) {
  field.remove_prefix(std::min(field.find(';'), field.size()));
  while (field.starts_with(';')) {
    field.remove_prefix(1);
    const auto end = field.find_first_of("=;");
    const auto given = trim(field.substr(0, end));
    field.remove_prefix(std::min(end, field.size()));
    if (!field.starts_with('=')) continue;
    field.remove_prefix(1);
    auto value = take_value(field);
    if (equal_ignoring_case(given, name)) return value;
    field.remove_prefix(std::min(field.find(';'), field.size()));
  }
  return std::nullopt;
}

bool is_media_type(std::string_view field, std::string_view type) {
  return equal_ignoring_case(trim(field.substr(0, field.find(';'))), type);
}

MultipartReader::MultipartReader(std::string_view boundary)
    : delimiter_(std::string(kLineEnd) + "--" + std::string(boundary)),
      // The first delimiter may be at the beginning of the body, without the line's end before it.
      buffer_(kLineEnd) {
  if (boundary.empty() || boundary.size() > 70) throw malformed("its boundary must have 1 to 70 characters");
}

void MultipartReader::feed(std::string_view bytes) {
  if (state_ == State::ended) return;
  buffer_.erase(0, std::exchange(at_, 0));
  buffer_ += bytes;
}

MultipartReader::Step MultipartReader::next() {
  for (;;) {
    if (state_ == State::ended) return Step::end;
    if (const auto step = state_ == State::headers ? read_header() : next_text()) return *step;
  }
}

void MultipartReader::check_complete() const {
  if (state_ == State::ended) return;
  throw malformed(state_ == State::preamble ? "its boundary does not occur" : "its end is missing");
}

// Up to `end` there is no delimiter.
std::optional<MultipartReader::Step> MultipartReader::take_text(std::size_t end) {
  data_ = std::string_view(buffer_).substr(at_, end - at_);
  at_ = end;
  if (data_.empty()) return Step::needs_input;
  if (state_ == State::part) return Step::data;
  return std::nullopt;
}

std::optional<MultipartReader::Step> MultipartReader::next_text() {
  for (std::size_t from = at_;;) {
    const auto found = buffer_.find(delimiter_, from);
    if (found == std::string::npos)
      return take_text(buffer_.size() - std::min(buffer_.size() - at_, delimiter_.size() - 1));
    const auto after = std::string_view(buffer_).substr(found + delimiter_.size());
    const auto padding = std::min(after.find_first_not_of(" \t"), after.size());
    if (padding > kMaxLineBytes) throw too_long();
    const auto rest = after.substr(padding);
    const bool is_last = after.starts_with("--");
    if (!is_last && !rest.starts_with(kLineEnd)) {
      if (rest.empty() || rest == "\r" || after == "-") {  // more bytes decide
        if (found > at_) return take_text(found);
        return Step::needs_input;
      }
      from = found + 1;  // another text that begins with the boundary
      continue;
    }
    if (found > at_) return take_text(found);
    at_ = found + delimiter_.size() + (is_last ? 2 : padding + kLineEnd.size());
    const bool ends_part = state_ == State::part;
    state_ = is_last ? State::ended : State::headers;
    headers_ = {};
    if (ends_part) return Step::part_end;
    return std::nullopt;
  }
}

std::optional<MultipartReader::Step> MultipartReader::read_header() {
  const auto end = buffer_.find(kLineEnd, at_);
  if (std::min(end, buffer_.size()) - at_ > kMaxLineBytes + 1) throw too_long();  // 1 for a CR
  if (end == std::string::npos) return Step::needs_input;
  const auto line = std::string_view(buffer_).substr(at_, end - at_);
  at_ = end + kLineEnd.size();
  if (line.empty()) {
    if (++parts_ > kMaxParts) throw malformed(fmt::format("it has more than {} parts", kMaxParts));
    state_ = State::part;
    return Step::part;
  }
  const auto colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) throw malformed("a part has an invalid header");
  if (headers_.fields.size() == kMaxFields)
    throw malformed(fmt::format("a part has more than {} fields", kMaxFields));
  headers_.fields.emplace_back(line.substr(0, colon), trim(line.substr(colon + 1)));
  return std::nullopt;
}

void MultipartWriter::begin() {
  if (has_parts_) out_ += kLineEnd;
  has_parts_ = true;
  out_ += "--" + boundary_;
}

void MultipartWriter::begin_part(std::string_view type, const Headers& fields) {
  begin();
  for (const auto& field : fields) out_.append("\r\n").append(field.name).append(": ").append(field.value);
  out_.append("\r\nContent-Type: ").append(type).append("\r\n\r\n");
}

void MultipartWriter::begin_file(std::string_view type, std::string_view file_name, std::uint64_t length) {
  begin();
  out_ += fmt::format(
      "\r\nContent-Disposition: attachment; filename={}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
      quoted_name(file_name), type, length);
}

void MultipartWriter::end() {
  begin();
  out_ += "--";
}

}  // namespace divan::http
