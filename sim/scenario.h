// One world from its beginning to its end: a time of faults, then a quiet time, after which nothing may be
// left undone.
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
  std::map<std::string, std::int64_t> counts;  // what happened how often
};

/// Runs the world of a seed; prints its trace while it goes on if asked to. Any number of threads may run
/// worlds.
Outcome run_seed(std::uint64_t seed, bool print_trace = false);

}  // namespace divan::sim
