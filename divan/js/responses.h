// Parses the responses of a process. A script may have taken control of the process, so every length is
// checked, and a response that violates protocol.h is rejected as a whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/js/result.h"

namespace divan::js {

/// The lines that scripts wrote with log() during a request.
struct Log {
  struct Line {
    std::uint32_t function;  ///< its index in the program
    std::string text;
  };
  std::uint32_t dropped = 0;  ///< lines dropped beyond protocol::kMaxLogLines
  std::vector<Line> lines;
};

/// Parses a hello frame: returns whether the process reports that its system call filter is active; nullopt
/// if `frame` is not a hello of this version of the protocol.
std::optional<bool> parse_hello(std::string_view frame);

/// For each function the compilation failure, if any. `functions` is the number sent.
std::optional<std::vector<std::optional<Failure>>> parse_load_response(std::string_view frame,
                                                                       std::size_t functions, Log& log);

/// `documents` (at least one) is the number sent.
std::optional<MapResult> parse_map_response(std::string frame, std::size_t documents, std::size_t functions,
                                            Log& log);

/// `groups` (at least one) is the number sent; the response may cover only the first of them.
std::optional<std::vector<Reduction>> parse_reduce_response(std::string_view frame, std::size_t groups,
                                                            Log& log);

/// `calls` (at least one) is the number sent; the response may cover only the first of them.
std::optional<std::vector<Outcome>> parse_apply_response(std::string_view frame, std::size_t calls, Log& log);

/// The response to a request to list, or for rows.
struct ListResponse {
  ListState state;
  Outcome outcome;  ///< a failure only if the state is `ended`
};
std::optional<ListResponse> parse_list_response(std::string_view frame, Log& log);

/// Parses a stuck response: the index of the document, group or call in which a function could not be
/// interrupted.
std::optional<std::uint32_t> parse_stuck_response(std::string_view frame);

}  // namespace divan::js
