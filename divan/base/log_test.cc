#include "divan/base/log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace divan {
namespace {

TEST(Log, ANameWithControlCharactersForgesNoLine) {
  const auto path = std::filesystem::temp_directory_path() / "divan-log-test";
  std::filesystem::remove(path);
  log::configure(log::Level::info, path);
  log::info("Job {}", "x\n[error] forged\x1b[31m\x7f\xc2\x9b é \t\xc2z");
  log::configure(log::Level::info);
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text.substr(text.find("Job")), "Job x\\x0a[error] forged\\x1b[31m\\x7f\\x9b é \\x09\xc2z\n");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace divan
