#include "divan/http/serializer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "divan/base/check.h"

namespace divan::http {
namespace {

template <class Int>
void append_number(std::string& out, Int value, int base = 10) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, base).ptr;
  out.append(digits, end);
}

bool breaks_lines(char c) { return c == '\r' || c == '\n' || c == '\0'; }

void append_text(std::string& out, std::string_view text) {
  const auto begin = out.size();
  out.append(text);
  std::replace_if(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), breaks_lines, ' ');
}

bool is_servers_own(std::string_view name) {
  switch (name.size()) {
    case 4: return equal_ignoring_case(name, "Date");
    case 6: return equal_ignoring_case(name, "Server");
    case 10: return equal_ignoring_case(name, "Connection");
    case 14: return equal_ignoring_case(name, "Content-Length");
    case 17: return equal_ignoring_case(name, "Transfer-Encoding");
    default: return false;
  }
}

}  // namespace

void append_head(std::string& out, const Response& response, const HeadFraming& framing) {
  DIVAN_CHECK(response.status >= 100 && response.status <= 599, "a response with the status {}",
              response.status);
  out += "HTTP/1.1 ";
  append_number(out, response.status);
  out += ' ';
  out += reason_phrase(response.status);
  out += "\r\n";
  out += framing.own_fields;
  for (const auto& header : response.headers) {
    if (is_servers_own(header.name)) continue;
    append_text(out, header.name);
    out += ": ";
    append_text(out, header.value);
    out += "\r\n";
  }
  if (framing.framing == Framing::length) {
    out += "Content-Length: ";
    append_number(out, framing.length);
    out += "\r\n";
  } else if (framing.framing == Framing::chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  if (!framing.connection.empty()) {
    out += "Connection: ";
    out += framing.connection;
    out += "\r\n";
  }
  out += "\r\n";
}

void append_chunk_size(std::string& out, std::uint64_t size) {
  append_number(out, size, 16);
  out += "\r\n";
}

std::string http_date(std::int64_t unix_seconds) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  using namespace std::chrono;
  const sys_seconds time{seconds(unix_seconds)};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[weekday(day).c_encoding()],
                     unsigned(date.day()), kMonths[unsigned(date.month()) - 1], int(date.year()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::optional<std::uint64_t> own_content_length(const Response& response) {
  for (const auto& header : response.headers) {
    if (!equal_ignoring_case(header.name, "Content-Length")) continue;
    std::uint64_t length = 0;
    const auto* end = header.value.data() + header.value.size();
    const auto parsed = std::from_chars(header.value.data(), end, length);
    if (parsed.ec == std::errc() && parsed.ptr == end) return length;
  }
  return std::nullopt;
}

}  // namespace divan::http
