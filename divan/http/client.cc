#include "divan/http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "divan/http/input_buffer.h"

namespace divan::http {
namespace {

bool is_idempotent(std::string_view method) {
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

Error too_large() { return {502, "bad_response", "The server's response is too large."}; }

void check(std::string_view text, bool spaces_allowed) {
  const auto is_invalid = [&](char c) {
    return c == '\r' || c == '\n' || c == '\0' || (c == ' ' && !spaces_allowed);
  };
  if (std::any_of(text.begin(), text.end(), is_invalid)) {
    throw bad_request("A request's method, target or header contains a line break, a null byte or a space.");
  }
}

// Splits a body into lines.
class Lines {
 public:
  Lines(const Client::LineSink& sink, std::uint64_t max_bytes) : sink_(sink), max_bytes_(max_bytes) {}

  // Returns false if the sink has stopped.
  bool take(std::string_view bytes) {
    for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
      line_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      if (!give()) return false;
    }
    if (line_.size() + bytes.size() > max_bytes_) throw too_large();
    line_ += bytes;
    return true;
  }

  // The last line may lack a line end.
  void finish() {
    if (!line_.empty()) give();
  }

 private:
  bool give() {
    if (line_.ends_with('\r')) line_.pop_back();
    return sink_(std::exchange(line_, {}));
  }

  const Client::LineSink& sink_;
  const std::uint64_t max_bytes_;
  std::string line_;
};

}  // namespace

std::optional<std::string_view> ClientResponse::header(std::string_view name) const {
  for (const auto& field : headers) {
    if (equal_ignoring_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

Client::Client(std::string host, std::uint16_t port, std::optional<Credentials> credentials,
               ClientOptions options)
    : host_(std::move(host)), port_(port), credentials_(std::move(credentials)), options_(options) {}

ClientResponse Client::request(std::string_view method, std::string_view target, std::string_view body,
                               const Headers& headers) {
  return run(method, target, body, headers, nullptr);
}

ClientResponse Client::stream(std::string_view method, std::string_view target, const BodySink& sink,
                              std::string_view body, const Headers& headers) {
  return run(method, target, body, headers, &sink);
}

ClientResponse Client::stream_lines(std::string_view method, std::string_view target, const LineSink& sink,
                                    std::string_view body, const Headers& headers) {
  Lines lines(sink, options_.max_body_bytes);
  bool enough = false;
  const BodySink cut = [&](std::string_view bytes) {
    enough = !lines.take(bytes);
    return !enough;
  };
  auto response = run(method, target, body, headers, &cut);
  if (!enough) lines.finish();
  return response;
}

std::string Client::message(std::string_view method, std::string_view target, std::string_view body,
                            const Headers& headers) const {
  check(method, false);
  check(target, false);
  auto out = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", method, target, host_and_port(host_, port_));
  if (credentials_) out += fmt::format("Authorization: {}\r\n", basic_authorization(*credentials_));
  for (const auto& [name, value] : headers) {
    check(name, false);
    check(value, true);
    out += fmt::format("{}: {}\r\n", name, value);
  }
  const bool has_body = !body.empty() || method == "POST" || method == "PUT";
  if (has_body) out += fmt::format("Content-Length: {}\r\n", body.size());
  out += "\r\n";
  return out.append(body);
}

ClientResponse Client::run(std::string_view method, std::string_view target, std::string_view body,
                           const Headers& headers, const BodySink* sink) {
  const auto bytes = message(method, target, body, headers);
  for (;;) {
    const bool reused = reuse();
    if (auto response = attempt(std::move(socket_), bytes, method == "HEAD", sink))
      return std::move(*response);
    if (!reused || !is_idempotent(method)) { throw connection_lost("without a response"); }
  }
}

Error Client::connection_lost(std::string_view when) const {
  return {503, "connection_lost",
          fmt::format("{} closed the connection {}.", host_and_port(host_, port_), when)};
}

bool Client::reuse() {
  // An idle connection that is readable has been closed by the server.
  if (socket_ && !socket_->readable()) return true;
  socket_ = std::make_unique<ClientSocket>(host_, port_, options_.connect_timeout, options_.io_timeout);
  return false;
}

// Returns nullopt if the connection ended before the first byte of a response.
std::optional<ClientResponse> Client::attempt(std::unique_ptr<ClientSocket> socket, std::string_view bytes,
                                              bool head_only, const BodySink* sink) {
  ClientResponse response;
  bool enough = false;
  ParserLimits limits;
  limits.max_header_bytes = options_.max_header_bytes;
  limits.max_body_bytes = std::numeric_limits<std::uint64_t>::max();  // limited by this class
  ResponseParser parser(limits, head_only, [&](std::string_view part) {
    if (enough) return;
    if (sink != nullptr && parser.status() / 100 == 2) {
      enough = !(*sink)(part);
      return;
    }
    if (response.body.size() + part.size() > options_.max_body_bytes) throw too_large();
    response.body += part;
  });
  // A server may respond and close before it has read the whole request, so a failure here is not final.
  socket->send(bytes);
  InputBuffer input;
  bool any = false;
  while (!parser.done() && !enough) {
    input.ensure_space(options_.max_header_bytes);
    const auto size = socket->receive(input.space(), any || !options_.wait_for_response);
    if (!any && size.value_or(0) == 0) return std::nullopt;
    if (!size) throw connection_lost("within its response");
    if (*size == 0) {
      parser.feed_end();
      break;
    }
    any = true;
    input.commit(*size);
    input.consume(parser.feed(input.data()));
  }
  response.status = parser.status();
  response.headers = parser.headers();
  const bool whole = parser.done() && !enough && input.empty();
  if (whole && parser.keep_alive()) socket_ = std::move(socket);
  return response;
}

}  // namespace divan::http
