// Reading the answers of a process that may have been taken over by a script: every length is checked, and
// anything that protocol.h does not allow makes the whole answer void.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/js/result.h"

namespace divan::js {

/// What scripts wrote with log() while a request ran.
struct Log {
  struct Line {
    std::uint32_t function;  ///< its place in the program
    std::string text;
  };
  std::uint32_t dropped = 0;  ///< lines over protocol::kMaxLogLines
  std::vector<Line> lines;
};

/// Whether `frame` greets in this version of the protocol, and then whether the process says that its system
/// call filter is active.
std::optional<bool> parse_hello(std::string_view frame);

/// For each function why it does not compile. `functions` is how many were sent.
std::optional<std::vector<std::optional<Failure>>> parse_load_answer(std::string_view frame,
                                                                     std::size_t functions, Log& log);

/// `documents` (at least one) is how many were sent.
std::optional<MapResult> parse_map_answer(std::string frame, std::size_t documents, std::size_t functions,
                                          Log& log);

/// `groups` (at least one) is how many were sent; the answer may have fewer, from the first on.
std::optional<std::vector<Reduction>> parse_reduce_answer(std::string_view frame, std::size_t groups,
                                                          Log& log);

/// The number of the document or group in which a function could not be interrupted, if that is the answer.
std::optional<std::uint32_t> parse_stuck_answer(std::string_view frame);

}  // namespace divan::js
