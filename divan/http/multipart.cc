#include "divan/http/multipart.h"

#include <fmt/core.h>

#include "divan/base/error.h"
#include "divan/http/field_list.h"
#include "divan/http/message.h"

namespace divan::http {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::size_t kMaxFields = 100;

Error malformed(std::string_view what) {
  return bad_request(fmt::format("The multipart body is malformed: {}.", what));
}

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

// The part's fields, which end with an empty line, and its body.
BodyPart parse_part(std::string_view text) {
  BodyPart part;
  while (!text.starts_with(kLineEnd)) {
    const auto end = text.find(kLineEnd);
    const auto line = text.substr(0, end);
    const auto colon = line.find(':');
    if (end == std::string_view::npos || colon == 0 || colon == std::string_view::npos)
      throw malformed("a part has an invalid header");
    if (part.headers.size() == kMaxFields)
      throw malformed(fmt::format("a part has more than {} fields", kMaxFields));
    part.headers.emplace_back(line.substr(0, colon), trim(line.substr(colon + 1)));
    text.remove_prefix(end + kLineEnd.size());
  }
  part.body = text.substr(kLineEnd.size());
  return part;
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

std::optional<std::string_view> BodyPart::header(std::string_view name) const {
  for (const auto& [given, value] : headers) {
    if (equal_ignoring_case(given, name)) return value;
  }
  return std::nullopt;
}

std::optional<std::string> BodyPart::file_name() const {
  const auto disposition = header("Content-Disposition");
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

std::vector<BodyPart> parse_multipart(std::string_view body, std::string_view boundary) {
  if (boundary.empty() || boundary.size() > 70) throw malformed("its boundary must have 1 to 70 characters");
  const std::string delimiter = std::string(kLineEnd) + "--" + std::string(boundary);
  std::vector<BodyPart> parts;
  bool begun = false;
  std::size_t part_begin = 0;
  // The first delimiter may be at the beginning of the body, without the line's end before it.
  std::size_t at = body.starts_with(delimiter.substr(kLineEnd.size())) ? 0 : body.find(delimiter);
  for (; at != std::string_view::npos; at = body.find(delimiter, at)) {
    const bool at_beginning = at == 0 && !body.starts_with(kLineEnd);
    auto after = body.substr(at + delimiter.size() - (at_beginning ? kLineEnd.size() : 0));
    const bool is_end = after.starts_with("--");
    const auto padding = std::min(after.find_first_not_of(" \t"), after.size());
    if (!is_end && !after.substr(padding).starts_with(kLineEnd)) {
      ++at;  // another text that begins with the boundary
      continue;
    }
    if (begun) {
      if (parts.size() == kMaxParts) throw malformed(fmt::format("it has more than {} parts", kMaxParts));
      parts.push_back(parse_part(body.substr(part_begin, at - part_begin)));
    }
    if (is_end) return parts;
    begun = true;
    part_begin = static_cast<std::size_t>(after.data() - body.data()) + padding + kLineEnd.size();
    at = part_begin;
  }
  throw malformed(begun ? "its end is missing" : "its boundary does not occur");
}

void MultipartWriter::begin() {
  if (has_parts_) out_ += kLineEnd;
  has_parts_ = true;
  out_ += "--" + boundary_;
}

void MultipartWriter::begin_part(std::string_view type) {
  begin();
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
