// The protocol between the server and divan-js, a process that runs untrusted JavaScript.
//
// The server writes requests to the process's standard input and reads responses from its standard output,
// one response per request, in order. Numbers are unsigned and little-endian; a `text` is a u32 length and
// that many bytes; `n *` is a u32 count n followed by n of the items after it. All messages are frames:
//
//   frame    = u32 length (at most kMaxFrame) of what follows, then hello, request or response
//   hello    = u32 kVersion, u8 locked (1: the system call filter is active); sent once, before any response
//   request  = u8 RequestKind, u32 invocation_ms, u32 batch_ms, then by kind:
//     load    u32 slot (below kSlots, or kNoSlot: check only), text root (a JSON object in which require()
//             finds modules; empty: there is no require()), n * { text name, text source }
//     map     u32 slot, n * text document (JSON)
//     reduce  u32 slot (of a program with one function), u8 rereduce,
//             n * { text keys (JSON array, or "null"), text values (JSON array) }
//     apply   u32 slot (of a program with one function), u8 ResultKind,
//             n * { text first, text last (JSON arrays: the first and the last arguments; last is empty if
//                   they are the very objects of the call before) }
//     list    u32 slot (of a program with one function), text arguments, text rows (JSON arrays: the
//             arguments, and the first rows that getRow() returns; there are more)
//     rows    u8 last (1: there are no more rows), text rows (JSON array): continues a list
//   response = u8 RequestKind of the request (list for rows; or kStuck), by kind, then log:
//     load    for each function: outcome{}
//     map     u32 documents done, then for each document, for each function:
//             outcome{n * { text key, text value }}
//     reduce  u32 groups done, then for each group: outcome{text result (JSON)}
//     apply   u32 calls done, then for each call: outcome{text result (by ResultKind)}
//     list    u8 ListState, outcome{text output (as ResultKind::list)}. Unless the state is `ended`, the
//             function goes on when the server sends `rows`, and the outcome is no failure.
//     stuck   u32 document, group or call (0 while a program is loaded) in which a function timed out and
//             could not be interrupted; no log follows, and the process exits with kExitStuck
//   outcome{x} = u8 0, x   |   u8 FailureKind, text message
//   log      = u32 lines that were dropped, n * { u32 function (its index in the program), text line }
//
// Documents, groups and calls are processed in order. A response may cover only the first of them, but at
// least one, when the batch's time is up or the response is full; the server then requests the rest. A
// process that receives anything else exits with kExitProtocol; one that sends anything else is killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace divan::js {

/// The reason why a function has no result. The values are part of the protocol.
enum class FailureKind : std::uint8_t {
  exception = 1,      ///< it threw, or its result cannot be written as JSON
  timeout = 2,        ///< it exceeded the time limit of one invocation
  out_of_memory = 3,  ///< the engine's memory limit
  too_large = 4,      ///< it emitted or returned more than kMaxOutput or kMaxEmits
  compilation = 5,    ///< its source is not a function
  // Not sent; set by the server:
  crashed = 6,          ///< the process died
  reduce_overflow = 7,  ///< a reduction does not shrink (reduce_limit.h)
};

/// What the result of a call is. The values are part of the protocol.
enum class ResultKind : std::uint8_t {
  value = 0,    ///< what the function returns, as JSON
  truth = 1,    ///< "true" or "false": whether JavaScript takes what it returns for true
  refusal = 2,  ///< what it throws, as JSON, unless that is an Error, which is a failure; empty if it returns
  // As JSON; {"error": [name, reason]} if the function throws an error of CouchDB's form (sandbox/driver.h):
  show = 3,  ///< {"response": {...}} of a show function
  list = 4,  ///< {"start": {...}, "body": "..."} of a list function, whose rows are the last arguments
  call = 5,  ///< {"value": ...}: what the function returns; without the member, it returns undefined
};

/// What a list function that reads its rows in pages does. The values are part of the protocol.
enum class ListState : std::uint8_t {
  ended = 0,
  wants_rows = 1,
  has_output = 2,  ///< its output is large; it needs no rows yet
};

/// A value type.
struct Failure {
  FailureKind kind;
  std::string message;  ///< at most protocol::kMaxMessage bytes, a line number and a hint
};

namespace protocol {

inline constexpr std::uint32_t kVersion = 0x444a5305;  // "DJS", 5

/// The most bytes of one request or response.
inline constexpr std::size_t kMaxFrame = std::size_t{64} << 20;
/// The most programs that a process keeps compiled.
inline constexpr std::uint32_t kSlots = 16;
inline constexpr std::uint32_t kNoSlot = 0xffffffff;
/// The most functions of one program.
inline constexpr std::size_t kMaxFunctions = 1000;

/// The most bytes of JSON that one invocation may emit or return, and the most pairs that it may emit.
inline constexpr std::size_t kMaxOutput = std::size_t{16} << 20;
inline constexpr std::size_t kMaxEmits = 250'000;
/// The most bytes of JSON that a function may throw as a refusal.
inline constexpr std::size_t kMaxRefusal = std::size_t{4} << 10;
/// A response with this many bytes or pairs is full: the process does not start further documents of the
/// batch.
inline constexpr std::size_t kFullBytes = std::size_t{32} << 20;
inline constexpr std::size_t kFullPairs = 500'000;
/// The most pairs in one response: those of a full one and of one more invocation.
inline constexpr std::size_t kMaxPairs = kFullPairs + kMaxEmits;

/// A function that has timed out or run out of memory this often in one request to map or to reduce is not
/// run again in it: its remaining documents fail in the same way at once, so that an endless loop costs only
/// seconds per batch. The calls of a request to apply are independent: they may be of different users.
inline constexpr std::uint32_t kMaxStrikes = 3;
/// If an invocation continues for this long after its limit, since it cannot be interrupted, the process
/// sends a stuck response and exits.
inline constexpr std::uint32_t kGraceMs = 1000;

/// The most bytes of a failure's message or of a log line, and the most log lines in one response.
inline constexpr std::size_t kMaxMessage = 1000;
inline constexpr std::size_t kMaxLogLines = 100;

inline constexpr int kExitSetUp = 1;
inline constexpr int kExitProtocol = 2;
inline constexpr int kExitStuck = 3;

enum class RequestKind : std::uint8_t { load = 1, map = 2, reduce = 3, apply = 4, list = 5, rows = 6 };
/// The kind of a stuck response.
inline constexpr std::uint8_t kStuck = 0;

inline void put_u8(std::string& out, std::uint8_t value) { out.push_back(static_cast<char>(value)); }

inline void put_u32_at(std::string& out, std::size_t position, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) out[position + i] = static_cast<char>(value >> (8 * i));
}

inline void put_u32(std::string& out, std::size_t value) {
  out.append(4, '\0');
  put_u32_at(out, out.size() - 4, static_cast<std::uint32_t>(value));
}

inline void put_text(std::string& out, std::string_view text) {
  put_u32(out, text.size());
  out += text;
}

inline void put_failure(std::string& out, const Failure& failure) {
  put_u8(out, static_cast<std::uint8_t>(failure.kind));
  put_text(out, failure.message);
}

/// Fills in the length of a frame that was started with four placeholder bytes.
inline void finish_frame(std::string& frame) {
  put_u32_at(frame, 0, static_cast<std::uint32_t>(frame.size() - 4));
}

inline std::uint32_t read_u32_le(const char* bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

/// Parses numbers and texts from the front of untrusted bytes. If the input is too short, returns zero or an
/// empty text, and all later reads fail. Not thread-safe.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8() {
    const auto bytes = take(1);
    return bytes.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(bytes[0]);
  }
  std::uint32_t u32() {
    const auto bytes = take(4);
    return bytes.empty() ? 0 : read_u32_le(bytes.data());
  }
  std::string_view text() { return take(u32()); }

  /// Reads a count of items of at least `smallest` bytes each; fails if that many do not fit the rest.
  std::uint32_t count(std::size_t smallest) {
    const auto value = u32();
    if (value <= rest_.size() / smallest) return value;
    fail();
    return 0;
  }

  void fail() {
    failed_ = true;
    rest_ = {};
  }
  bool failed() const { return failed_; }
  /// Returns true if no read has failed and no bytes are left.
  bool finished() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) {
      fail();
      return {};
    }
    const auto taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace protocol
}  // namespace divan::js
