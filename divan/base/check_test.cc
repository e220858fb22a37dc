#include "divan/base/check.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "divan/base/log.h"

namespace divan {
namespace {

TEST(CheckDeathTest, EndsTheProcessWithALineThatCanBeReported) {
  const int last = 7;
  const int next = 5;
  EXPECT_EXIT(DIVAN_CHECK(next > last, "version {} follows {}", next, last), testing::KilledBySignal(SIGABRT),
              "divan/base/check_test.cc:[0-9]+: check failed: next > last: version 5 follows 7. Divan "
              "[0-9.]+ ends here.*Please report this line.\n");
}

TEST(CheckDeathTest, IsOnInAllBuildsAndStopsNoexceptCode) {
  const auto check = [](bool holds) noexcept { DIVAN_CHECK(holds, "no arguments"); };
  check(true);
  EXPECT_EXIT(check(false), testing::KilledBySignal(SIGABRT), "check failed: holds: no arguments");
}

TEST(CheckDeathTest, RunsNeitherDestructorsNorExitHandlers) {
  struct Loud {
    ~Loud() { fmt::print(stderr, "a destructor ran"); }
  };
  const auto fail = [] {
    std::atexit([] { fmt::print(stderr, "an exit handler ran"); });
    const Loud loud;
    DIVAN_CHECK(false, "ends");
  };
  EXPECT_EXIT(fail(), testing::KilledBySignal(SIGABRT), "Please report this line.\n$");
}

TEST(CheckDeathTest, TheLogFileHasTheLine) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("divan-check-{}.log", getpid());
  const auto fail = [&] {
    log::configure(log::Level::error, path.string());
    DIVAN_CHECK(1 > 2, "in the log");
  };
  EXPECT_EXIT(fail(), testing::KilledBySignal(SIGABRT), "");
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("check failed: 1 > 2: in the log"), std::string::npos) << text.str();
  std::filesystem::remove(path);
}

TEST(CheckTest, EvaluatesTheMessageOnlyOnFailure) {
  int evaluated = 0;
  DIVAN_CHECK(evaluated == 0, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

}  // namespace
}  // namespace divan
