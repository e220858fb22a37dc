// divan-sim: worlds from seeds, until one of them breaks a rule. See README.md
#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
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
  unsigned threads = std::max(1u, std::thread::hardware_concurrency());
};

[[noreturn]] void usage() {
  fmt::print(stderr,
             "divan-sim [--seeds N] [--from SEED] [--keep-going] [--threads N] | --seed SEED [--trace]\n");
  std::exit(2);
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
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(argv[++i], &end, 10);
    if (*end != '\0') usage();
    if (flag == "--seeds") {
      arguments.seeds = value;
    } else if (flag == "--from") {
      arguments.from = value;
    } else if (flag == "--seed") {
      arguments.from = value;
      arguments.seeds = 1;
    } else if (flag == "--threads") {
      arguments.threads = static_cast<unsigned>(value);
    } else {
      usage();
    }
  }
  return arguments;
}

// Worlds of several threads, and what came out of them.
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
    if (arguments_.seeds == 1) fmt::print("trace {:016x}\n", outcome.trace_hash);
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
    fmt::print("{} seeds, {} steps in {:.1f} s ({:.0f} steps/s), {:.0f} s of their time: {}\n", done_, steps_,
               seconds, static_cast<double>(steps_) / seconds, virtual_seconds_,
               failed_ > 0 ? fmt::format("{} FAILED", failed_.load()) : "all invariants held");
  }

  const Arguments arguments_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::atomic<std::uint64_t> next_;
  std::atomic<int> failed_ = 0;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
  std::int64_t steps_ = 0;
  double virtual_seconds_ = 0;
  std::map<std::string, std::int64_t> counts_;
};

}  // namespace
}  // namespace divan::sim

int main(int argc, char** argv) {
  // Evictions and lost commits are what this is about: the rooms' warnings about them say nothing here.
  divan::log::set_level(divan::log::Level::off);
  return divan::sim::Runs(divan::sim::parse(argc, argv)).run();
}
