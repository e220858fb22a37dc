// One world from its beginning to its end: a time with faults, then a quiet time, in which all work must be
// completed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace divan::sim {

struct Outcome {
  std::string failure;                 // empty: all invariants held
  std::deque<std::string> last_lines;  // of the trace
  std::uint64_t trace_hash = 0;        // the same for the same seed
  std::int64_t steps = 0;
  double virtual_seconds = 0;
  std::map<std::string, std::int64_t> counts;  // by event
};

/// Runs the world of a seed, and prints its trace if `print_trace`. Any number of threads may run worlds.
Outcome run_seed(std::uint64_t seed, bool print_trace = false);

}  // namespace divan::sim
