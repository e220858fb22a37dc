#include "divan/http/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "divan/http/input_buffer.h"

namespace divan::http {
namespace {

bool is_idempotent(std::string_view method) {
  constexpr std::string_view kMethods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

void check(std::string_view text, bool spaces_allowed) {
  const auto breaks = [&](char c) {
    return c == '\r' || c == '\n' || c == '\0' || (c == ' ' && !spaces_allowed);
  };
  if (std::any_of(text.begin(), text.end(), breaks)) {
    throw bad_request("A request's target or header has a character that cannot be sent.");
  }
}

// Where a response's body goes.
class BodySink {
 public:
  BodySink(ClientResponse& response, const Client::LineSink* lines, std::uint64_t max_bytes)
      : response_(response), lines_(lines), max_bytes_(max_bytes) {}

  void take(std::string_view bytes, bool by_line) {
    if (enough_) return;
    auto& gathered = by_line ? line_ : response_.body;
    for (auto end = bytes.find('\n'); by_line && end != std::string_view::npos; end = bytes.find('\n')) {
      line_ += bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      if (!give_line()) return;
    }
    if (gathered.size() + bytes.size() > max_bytes_) {
      throw Error(502, "bad_response", "The server's response is too large.");
    }
    gathered += bytes;
  }

  void finish() {
    if (!enough_ && !line_.empty()) give_line();
  }

  bool enough() const { return enough_; }

 private:
  bool give_line() {
    if (line_.ends_with('\r')) line_.pop_back();
    enough_ = !(*lines_)(line_);
    line_.clear();
    return !enough_;
  }

  ClientResponse& response_;
  const Client::LineSink* lines_;
  const std::uint64_t max_bytes_;
  std::string line_;
  bool enough_ = false;
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

ClientResponse Client::stream_lines(std::string_view method, std::string_view target, const LineSink& sink,
                                    std::string_view body, const Headers& headers) {
  return run(method, target, body, headers, &sink);
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
                           const Headers& headers, const LineSink* sink) {
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
  // What comes unasked on an idle connection is its end.
  if (socket_ && !socket_->readable()) return true;
  socket_ = std::make_unique<ClientSocket>(host_, port_, options_.connect_timeout, options_.io_timeout);
  return false;
}

// Nothing if the connection ended before anything came.
std::optional<ClientResponse> Client::attempt(std::unique_ptr<ClientSocket> socket, std::string_view bytes,
                                              bool head_only, const LineSink* lines) {
  ClientResponse response;
  BodySink body(response, lines, options_.max_body_bytes);
  ParserLimits limits;
  limits.max_header_bytes = options_.max_header_bytes;
  limits.max_body_bytes = std::numeric_limits<std::uint64_t>::max();  // the sink's task
  ResponseParser parser(limits, head_only, [&](std::string_view part) {
    body.take(part, lines != nullptr && parser.status() / 100 == 2);
  });
  // A server may answer and close before it has read all of the request, so a failure here says nothing yet.
  socket->send(bytes);
  InputBuffer input;
  bool any = false;
  while (!parser.done() && !body.enough()) {
    input.make_room(options_.max_header_bytes, false);
    const auto size = socket->receive(input.space());
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
  body.finish();
  response.status = parser.status();
  response.headers = parser.headers();
  const bool whole = parser.done() && !body.enough() && input.empty();
  if (whole && parser.keep_alive()) socket_ = std::move(socket);
  return response;
}

}  // namespace divan::http
