#include "divan/js/responses.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/check.h"

namespace divan::js {
namespace {

using protocol::Reader;
using protocol::RequestKind;

// The most bytes that the process adds to the kMaxMessage bytes of a message: a prefix, a line number with a
// file, and a hint.
constexpr std::size_t kMessageExtra = 500;

void expect(bool good, Reader& in) {
  if (!good) in.fail();
}

void expect_kind(RequestKind kind, Reader& in) { expect(in.u8() == static_cast<std::uint8_t>(kind), in); }

// Messages are written to the log and to terminals: line breaks and control characters are escaped.
std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code != 0x7f) {
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += ' ';
    } else {
      out += fmt::format("\\x{:02x}", code);
    }
  }
  return out;
}

std::string read_message(Reader& in) {
  const auto text = in.text();
  expect(text.size() <= protocol::kMaxMessage + kMessageExtra && is_utf8(text), in);
  return in.failed() ? std::string() : printable(text);
}

// Reads the head of an outcome; nullopt if the function succeeded.
std::optional<Failure> read_failure(Reader& in) {
  const auto kind = in.u8();
  if (kind == 0) return std::nullopt;
  expect(kind < static_cast<std::uint8_t>(FailureKind::crashed), in);
  return Failure{static_cast<FailureKind>(kind), read_message(in)};
}

// Reads the number of documents, groups or calls done, 1 to `sent`.
std::uint32_t read_done(Reader& in, std::size_t sent) {
  const auto done = in.u32();
  expect(done >= 1 && done <= sent, in);
  return in.failed() ? 0 : done;
}

void read_log(Reader& in, std::size_t functions, Log& log) {
  log.dropped = in.u32();
  const auto lines = in.u32();
  expect(lines <= protocol::kMaxLogLines, in);
  for (std::uint32_t i = 0; i < lines && !in.failed(); ++i) {
    const auto function = in.u32();
    expect(function < functions, in);
    log.lines.push_back({function, read_message(in)});
  }
}

Outcome read_outcome(Reader& in) {
  if (auto failure = read_failure(in)) return *std::move(failure);
  return std::string(in.text());
}

// Parses the response of a program with one function: an outcome for each of the first of `sent` items.
std::optional<std::vector<Outcome>> parse_outcomes(RequestKind kind, std::string_view frame, std::size_t sent,
                                                   Log& log) {
  Reader in(frame);
  expect_kind(kind, in);
  const auto done = read_done(in, sent);
  std::vector<Outcome> outcomes;
  for (std::uint32_t i = 0; i < done && !in.failed(); ++i) outcomes.push_back(read_outcome(in));
  read_log(in, 1, log);
  if (!in.finished()) return std::nullopt;
  return outcomes;
}

}  // namespace

// Fills a MapResult.
class MapResponseParser {
 public:
  MapResponseParser(std::string frame, std::size_t functions) : result_(functions) {
    result_.bytes_.push_back(std::make_unique<const std::string>(std::move(frame)));
  }

  std::optional<MapResult> parse(std::size_t documents, Log& log) {
    Reader in(*result_.bytes_.front());
    expect_kind(RequestKind::map, in);
    const auto done = read_done(in, documents);
    result_.cells_.reserve(done * result_.functions_);
    for (std::size_t i = 0; i < done * result_.functions_ && !in.failed(); ++i) read_cell(in);
    read_log(in, result_.functions_, log);
    if (!in.finished()) return std::nullopt;
    DIVAN_CHECK(result_.cells_.size() == done * result_.functions_, "{} cells of {} documents",
                result_.cells_.size(), done);
    result_.documents_ = done;
    return std::move(result_);
  }

 private:
  void read_cell(Reader& in) {
    auto& cell = result_.cells_.emplace_back();
    if (auto failure = read_failure(in)) {
      cell.failure = static_cast<std::uint32_t>(result_.failures_.size());
      result_.failures_.push_back(std::move(*failure));
      return;
    }
    cell.first = static_cast<std::uint32_t>(result_.emitted_.size());
    cell.count = in.count(8);
    expect(result_.emitted_.size() + cell.count <= protocol::kMaxPairs, in);
    for (std::uint32_t i = 0; i < cell.count && !in.failed(); ++i) {
      const auto key = in.text();
      result_.emitted_.push_back({key, in.text()});
    }
  }

  MapResult result_;
};

std::optional<bool> parse_hello(std::string_view frame) {
  Reader in(frame);
  expect(in.u32() == protocol::kVersion, in);
  const auto locked = in.u8();
  if (!in.finished()) return std::nullopt;
  return locked == 1;
}

std::optional<std::uint32_t> parse_stuck_response(std::string_view frame) {
  Reader in(frame);
  expect(in.u8() == protocol::kStuck, in);
  const auto number = in.u32();
  if (!in.finished()) return std::nullopt;
  return number;
}

std::optional<std::vector<std::optional<Failure>>> parse_load_response(std::string_view frame,
                                                                       std::size_t functions, Log& log) {
  Reader in(frame);
  expect_kind(RequestKind::load, in);
  expect(in.u32() == functions, in);
  std::vector<std::optional<Failure>> failures;
  for (std::size_t i = 0; i < functions && !in.failed(); ++i) failures.push_back(read_failure(in));
  read_log(in, functions, log);
  if (!in.finished()) return std::nullopt;
  return failures;
}

std::optional<MapResult> parse_map_response(std::string frame, std::size_t documents, std::size_t functions,
                                            Log& log) {
  return MapResponseParser(std::move(frame), functions).parse(documents, log);
}

std::optional<std::vector<Reduction>> parse_reduce_response(std::string_view frame, std::size_t groups,
                                                            Log& log) {
  return parse_outcomes(RequestKind::reduce, frame, groups, log);
}

std::optional<std::vector<Outcome>> parse_apply_response(std::string_view frame, std::size_t calls,
                                                         Log& log) {
  return parse_outcomes(RequestKind::apply, frame, calls, log);
}

std::optional<ListResponse> parse_list_response(std::string_view frame, Log& log) {
  Reader in(frame);
  expect_kind(RequestKind::list, in);
  const auto state = in.u8();
  expect(state <= static_cast<std::uint8_t>(ListState::has_output), in);
  ListResponse response{static_cast<ListState>(state), read_outcome(in)};
  expect(response.state == ListState::ended || std::holds_alternative<std::string>(response.outcome), in);
  read_log(in, 1, log);
  if (!in.finished()) return std::nullopt;
  return response;
}

}  // namespace divan::js
