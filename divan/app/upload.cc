#include "divan/app/upload.h"

#include <fmt/core.h>

#include <span>
#include <utility>

#include "divan/app/connection.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::app {
namespace {

// With the pauses between them about eight seconds, in which a server can restart.
constexpr int kAttempts = 5;

bool is_lost(const Error& error) {
  return error.name() == "connection_failed" || error.name() == "connection_lost" ||
         error.name() == "timeout";
}

}  // namespace

Upload::Upload(http::Client& client, const Clock& clock, backup::Header header, kv::Version version,
               const std::vector<backup::RestoredDatabase>& databases)
    : client_(client), clock_(clock), header_(std::move(header)), version_(version) {
  std::string body;
  json::Writer writer(body);
  writer.begin_object().key("version").number(version_).key("databases").begin_array();
  for (const auto& [name, number, created_ms] : databases) {
    writer.begin_object().key("name").string(name).key("number").number(number);
    writer.key("created").number(created_ms).end_object();
  }
  writer.end_array().end_object();
  const auto response = request("POST", "/_restore", body);
  check_response(response);
  target_ = "/_restore/" + std::string(json::parse_object(response.body).at("id").as_string());
  begin_piece();
}

Upload::~Upload() {
  if (finished_) return;
  try {
    client_.request("DELETE", target_);
  } catch (const std::exception&) {}
}

void Upload::add(std::string_view key, std::string_view value) {
  writer_->add(key, value);
  ++rows_;
  if (piece_.size() >= piece_bytes_) send();
}

void Upload::finish() {
  send();
  finished_ = true;  // the result is unknown until the response arrives
  try {
    check_response(request("POST", target_, fmt::format(R"({{"rows":{}}})", rows_)));
  } catch (const Error& error) {
    if (!is_lost(error)) {
      finished_ = false;
      throw;
    }
    throw Error(
        error.status(), error.name(),
        error.reason() +
            " This was the last request of the restore, and its result is unknown: either all databases "
            "exist, or none (see `divan status`).");
  }
}

http::ClientResponse Upload::request(std::string_view method, const std::string& target,
                                     std::string_view body) {
  const bool is_json = method == "POST";
  const http::Headers headers{{"Content-Type", is_json ? "application/json" : "application/octet-stream"}};
  for (int attempt = 1;; ++attempt) {
    try {
      return client_.request(method, target, body, headers);
    } catch (const Error& error) {
      if (!is_lost(error) || attempt == kAttempts) throw;
      clock_.sleep(std::chrono::milliseconds(250) * (1 << attempt));
    }
  }
}

void Upload::begin_piece() {
  piece_.clear();
  writer_.emplace(header_, [this](std::string_view bytes) {
    piece_ += bytes;
    return true;
  });
}

void Upload::send() {
  writer_->finish(version_);
  send(std::exchange(piece_, {}));
  begin_piece();
}

void Upload::send(const std::string& piece) {
  const auto response = request("PUT", fmt::format("{}/{}", target_, next_), piece);
  if (response.status == 413) return send_halves(piece, response);
  check_response(response);
  ++next_;
}

// The server, or a proxy, does not accept requests of that size.
void Upload::send_halves(const std::string& piece, const http::ClientResponse& refusal) {
  std::vector<kv::KeyValue> rows;
  backup::Parser([&](std::string_view key, std::string_view value) {
    rows.push_back({std::string(key), std::string(value)});
  }).feed(piece);
  if (rows.size() < 2) check_response(refusal);
  piece_bytes_ = std::min(piece_bytes_, piece.size() / 2);
  const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
  for (const auto& half : {std::span(rows.begin(), middle), std::span(middle, rows.end())}) {
    std::string bytes;
    backup::Writer writer(header_, [&](std::string_view more) { return bytes += more, true; });
    for (const auto& row : half) writer.add(row.key, row.value);
    writer.finish(version_);
    send(bytes);
  }
}

}  // namespace divan::app
