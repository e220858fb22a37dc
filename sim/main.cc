// divan-sim: runs the worlds of seeds until one of them violates an invariant. See README.md
#include <fmt/core.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/log.h"
#include "sim/scenario.h"

namespace divan::sim {
namespace {

struct Arguments {
  std::uint64_t from = 1;
  std::uint64_t seeds = 300;
  bool trace = false;
  bool keep_going = false;
  std::uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
};

// The sum of two of them does not overflow.
constexpr std::uint64_t kMaxSeed = INT64_MAX;
constexpr std::uint64_t kMaxThreads = 1000;

[[noreturn]] void usage() {
  fmt::print(stderr,
             "divan-sim [--seeds N] [--from SEED] [--keep-going] [--threads N] | --seed SEED [--trace]\n");
  std::exit(2);
}

std::uint64_t number(const std::string& flag, std::string_view text, std::uint64_t min, std::uint64_t max) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || value < min || value > max) {
    fmt::print(stderr, "Invalid {} `{}`; expected a number from {} to {}.\n", flag, text, min, max);
    std::exit(2);
  }
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--trace") {
      arguments.trace = true;
      continue;
    }
    if (flag == "--keep-going") {
      arguments.keep_going = true;
      continue;
    }
    if (i + 1 == argc) usage();
    const std::string_view text = argv[++i];
    if (flag == "--seeds") {
      arguments.seeds = number(flag, text, 1, kMaxSeed);
    } else if (flag == "--from") {
      arguments.from = number(flag, text, 0, kMaxSeed);
    } else if (flag == "--seed") {
      arguments.from = number(flag, text, 0, kMaxSeed);
      arguments.seeds = 1;
    } else if (flag == "--threads") {
      arguments.threads = number(flag, text, 1, kMaxThreads);
    } else {
      usage();
    }
  }
  return arguments;
}

// Runs worlds on several threads, and reports their outcomes.
class Runs {
 public:
  explicit Runs(const Arguments& arguments) : arguments_(arguments), next_(arguments.from) {}

  int run() {
    std::vector<std::thread> threads;
    const auto count = std::min<std::uint64_t>(arguments_.threads, arguments_.seeds);
    for (std::uint64_t i = 0; i < count; ++i) {
      threads.emplace_back([this] { work(); });
    }
    for (auto& thread : threads) thread.join();
    report();
    return failed_ > 0 ? 1 : 0;
  }

 private:
  void work() {
    for (;;) {
      const std::uint64_t seed = next_++;
      if (seed >= arguments_.from + arguments_.seeds || (failed_ > 0 && !arguments_.keep_going)) return;
      const Outcome outcome = run_seed(seed, arguments_.trace);
      std::lock_guard lock(mutex_);
      add(seed, outcome);
    }
  }

  void add(std::uint64_t seed, const Outcome& outcome) {
    ++done_;
    steps_ += outcome.steps;
    virtual_seconds_ += outcome.virtual_seconds;
    for (const auto& [what, count] : outcome.counts) counts_[what] += count;
    // The order does not matter: worlds end in any order.
    traces_ += outcome.trace_hash * (2 * seed + 1);
    if (!outcome.failure.empty() && failed_++ == 0) {
      if (!arguments_.trace) {
        for (const auto& line : outcome.last_lines) fmt::print("{}\n", line);
      }
      fmt::print("\nSeed {}: {}\nTo see it again: ./dev sim --seed {} --trace\n\n", seed, outcome.failure,
                 seed);
    } else if (!outcome.failure.empty()) {
      fmt::print("Seed {}: {}\n", seed, outcome.failure);
    } else if (done_ % 100 == 0) {
      fmt::print("{} seeds\n", done_);
      std::fflush(stdout);
    }
  }

  void report() const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    for (const auto& [what, count] : counts_) fmt::print("{:>10}  {}\n", count, what);
    fmt::print("trace {:016x}\n", traces_);
    fmt::print("{} seeds, {} steps in {:.1f} s ({:.0f} steps/s), {:.0f} s of their time: {}\n", done_, steps_,
               seconds, static_cast<double>(steps_) / seconds, virtual_seconds_,
               failed_ > 0 ? fmt::format("{} FAILED", failed_.load()) : "all invariants held");
  }

  const Arguments arguments_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next_;
  std::atomic<int> failed_ = 0;
  std::mutex mutex_;  // protects the members below, to which the threads add their results
  std::uint64_t done_ = 0;
  std::int64_t steps_ = 0;
  std::uint64_t traces_ = 0;  // the same for the same seeds in each build
  double virtual_seconds_ = 0;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace
}  // namespace divan::sim

int main(int argc, char** argv) {
  // The warnings of modules about evictions and lost commits are expected here.
  divan::log::set_level(divan::log::Level::off);
  return divan::sim::Runs(divan::sim::parse(argc, argv)).run();
}
