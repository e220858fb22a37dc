#include "divan/api/static_files.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "divan/base/error.h"

namespace divan::api {
namespace {

using ::testing::HasSubstr;

struct StaticFilesTest : ::testing::Test {
  const std::string directory = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "divan-files-XXXXXX").string();
    return std::string(mkdtemp(pattern.data()));
  }();
  ~StaticFilesTest() override { std::filesystem::remove_all(directory); }

  void write(const std::string& path, const std::string& content) const {
    const auto file = std::filesystem::path(directory) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  std::string failure() const {
    try {
      StaticFiles{directory};
    } catch (const Error& error) { return error.reason(); }
    return "";
  }
};

TEST_F(StaticFilesTest, HasTheFilesBelowADirectory) {
  write("index.html", "<html>");
  write("js/a.js", "1");
  write("js/empty.css", "");
  const StaticFiles files(directory);
  ASSERT_NE(files.find("js/a.js"), nullptr);
  EXPECT_EQ(files.find("js/a.js")->content, "1");
  EXPECT_EQ(files.find("js/a.js")->type, "text/javascript; charset=utf-8");
  EXPECT_THAT(files.find("js/a.js")->last_modified, HasSubstr(" GMT"));
  EXPECT_NE(files.find("js/a.js")->etag, files.find("index.html")->etag);
  EXPECT_EQ(files.find("js/empty.css")->content, "");
  EXPECT_NE(StaticFiles(directory + "/").find("js/a.js"), nullptr);
  for (const char* path : {"", "js", "js/", "/index.html", "js/../index.html", "../index.html", "INDEX.html"})
    EXPECT_EQ(files.find(path), nullptr) << path;
}

TEST_F(StaticFilesTest, FollowsNoLinksAndHasNoHiddenFiles) {
  write("index.html", "<html>");
  write(".git/config", "secret");
  write("js/.env", "secret");
  std::filesystem::create_symlink("/etc/passwd", directory + "/passwd");
  std::filesystem::create_directory_symlink("/etc", directory + "/etc");
  const StaticFiles files(directory);
  for (const char* path : {".git/config", "js/.env", "passwd", "etc/passwd"})
    EXPECT_EQ(files.find(path), nullptr) << path;
}

TEST_F(StaticFilesTest, RefusesOtherDirectories) {
  EXPECT_EQ(failure(), directory + " has no index.html.");
  write("index.html", "<html>");
  EXPECT_EQ(failure(), "");
  for (std::size_t i = 0; i < StaticFiles::kMaxFiles; ++i) write("f/" + std::to_string(i), "");
  EXPECT_THAT(failure(), HasSubstr("has more than 2000 files"));
  std::filesystem::remove_all(directory);
  EXPECT_EQ(failure(), "Cannot read " + directory + ": No such file or directory");
  std::ofstream(directory) << "a file";
  EXPECT_EQ(failure(), "Cannot read " + directory + ": Not a directory");
}

}  // namespace
}  // namespace divan::api
