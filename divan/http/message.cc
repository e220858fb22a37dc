#include "divan/http/message.h"

#include "divan/base/json.h"
#include "divan/base/log.h"

namespace divan::http {
namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

Request::Request(std::string_view method, std::string_view target, int minor_version)
    : minor_version_(minor_version) {
  text_.reserve(256);
  fields_.reserve(8);
  method_ = append(method);
  target_ = append(target);
  split_target();
}

std::optional<std::string_view> Request::header(std::string_view name) const {
  for (const auto& field : fields_) {
    if (equal_ignoring_case(view(field.name), name)) return view(field.value);
  }
  return std::nullopt;
}

std::string Request::list_header(std::string_view name) const {
  std::string list;
  for (const auto& field : fields_) {
    if (!equal_ignoring_case(view(field.name), name)) continue;
    if (!list.empty()) list += ", ";
    list += view(field.value);
  }
  return list;
}

std::vector<std::pair<std::string_view, std::string_view>> Request::headers() const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  all.reserve(fields_.size());
  for (const auto& field : fields_) all.emplace_back(view(field.name), view(field.value));
  return all;
}

void Request::add_header(std::string_view name, std::string_view value) {
  const auto name_span = append(name);
  fields_.push_back({name_span, append(value)});
}

Request::Span Request::append(std::string_view bytes) {
  const Span span{static_cast<std::uint32_t>(text_.size()), static_cast<std::uint32_t>(bytes.size())};
  text_.append(bytes);
  return span;
}

void Request::split_target() {
  const auto target = view(target_);
  std::size_t begin = 0;
  // The absolute form, which clients send to proxies and servers must take (RFC 9112, section 3.2.2).
  const auto scheme = target.find("://");
  const bool absolute = !target.starts_with('/') && scheme < target.find_first_of("/?");
  if (absolute) begin = std::min(target.find_first_of("/?", scheme + 3), target.size());
  const auto mark = std::min(target.find('?', begin), target.size());
  path_ = {target_.begin + static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(mark - begin)};
  const auto after_mark = std::min(mark + 1, target.size());
  query_ = {target_.begin + static_cast<std::uint32_t>(after_mark),
            static_cast<std::uint32_t>(target.size() - after_mark)};
  if (path_.size == 0) path_ = append("/");
}

Response error_response(const Error& error) {
  Response response{error.status(), {{"Content-Type", "application/json"}}, {}};
  json::Writer(response.body)
      .begin_object()
      .key("error")
      .string(error.name())
      .key("reason")
      .string(error.reason())
      .end_object();
  response.body += '\n';
  return response;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 100: return "Continue";
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 203: return "Non-Authoritative Information";
    case 204: return "No Content";
    case 205: return "Reset Content";
    case 206: return "Partial Content";
    case 300: return "Multiple Choices";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 303: return "See Other";
    case 304: return "Not Modified";
    case 307: return "Temporary Redirect";
    case 308: return "Permanent Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 402: return "Payment Required";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 416: return "Range Not Satisfiable";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 422: return "Unprocessable Content";
    case 423: return "Locked";
    case 426: return "Upgrade Required";
    case 428: return "Precondition Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Unknown";
  }
}

void log_failure(const Request& request, const Error& error) {
  if (error.status() < 500 || error.status() == 501) return;
  log::error("{} {}: {} {}", request.method(), request.target(), error.status(), error.what());
}

}  // namespace divan::http
