#include "divan/base/log.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace divan {
namespace {

TEST(Log, ANameWithControlCharactersForgesNoLine) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("divan-log-test-{}", getpid());
  std::filesystem::remove(path);
  log::configure(log::Level::info, path);
  log::info("Job {}", "x\n[error] forged\x1b[31m\u009b2J é");
  log::configure(log::Level::info);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text.substr(text.find("Job")), "Job x\\n[error] forged\\u001b[31m\\u009b2J é\n");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace divan
