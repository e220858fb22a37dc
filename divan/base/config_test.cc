#include "divan/base/config.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "divan/base/error.h"

namespace divan {
namespace {

struct ConfigTest : testing::Test {
  std::string directory = [] {
    std::string pattern = (std::filesystem::temp_directory_path() / "divan-config-XXXXXX").string();
    return std::string(mkdtemp(pattern.data()));
  }();
  ~ConfigTest() override { std::filesystem::remove_all(directory); }
  std::string file(std::string_view text) const {
    const std::string path = directory + "/divan.ini";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(ConfigTest, LaterSourcesWin) {
  Config config;
  config.load(file("[chttpd]\nport = 1 ; comment\nbind_address=::1\n[couchdb]\nmax_document_size=5\n"));
  EXPECT_EQ(config.get("chttpd", "port"), "1");
  const char* environment[] = {"DIVAN_CHTTPD_PORT=2", "DIVAN_COUCHDB_MAX_DOCUMENT_SIZE=6", "PATH=/",
                               "DIVAN_X=1", nullptr};
  config.load_environment(environment);
  EXPECT_EQ(config.get("chttpd", "port"), "2");
  EXPECT_EQ(config.get_int("couchdb", "max_document_size", 0, 0, 10), 6);
  config.override_with("chttpd", "port", "3");
  EXPECT_EQ(config.get("chttpd", "port"), "3");
  EXPECT_EQ(config.get("chttpd", "bind_address", "x"), "::1");
  EXPECT_EQ(config.get("no", "such", "x"), "x");
}

TEST_F(ConfigTest, ChangesAreKept) {
  {
    Config config;
    config.keep_changes_in(directory + "/local.ini");
    EXPECT_FALSE(config.set("log", "level", "debug"));
    EXPECT_EQ(config.set("log", "level", "info"), "debug");
    config.set("ken", "delay", "5");
    EXPECT_EQ(config.erase("ken", "delay"), "5");
    EXPECT_FALSE(config.erase("ken", "delay"));
  }
  Config config;
  config.keep_changes_in(directory + "/local.ini");
  EXPECT_EQ(config.get("log", "level"), "info");
  EXPECT_FALSE(config.get("ken", "delay"));
}

TEST_F(ConfigTest, SettingsThatAFileCannotHoldAreRejected) {
  const std::string long_value(1000, 'x');
  {
    Config config;
    config.keep_changes_in(directory + "/local.ini");
    config.set("cors", "origins", long_value);
    EXPECT_THROW(config.set("a", "b", "v ; w"), Error);
    EXPECT_THROW(config.set("a", ";b", "v"), Error);
    EXPECT_THROW(config.set("a", "b", "\xff"), Error);
  }
  Config config;
  config.keep_changes_in(directory + "/local.ini");
  EXPECT_EQ(config.all(), (Config::Sections{{"cors", {{"origins", long_value}}}}));
}

TEST_F(ConfigTest, NumbersAreInTheirRange) {
  Config config;
  EXPECT_EQ(config.get_number("a", "ratio", 2.5, 0, 10), 2.5);
  config.override_with("a", "ratio", "1.25");
  EXPECT_EQ(config.get_number("a", "ratio", 2.5, 0, 10), 1.25);
  EXPECT_THROW(config.get_int("a", "ratio", 1, 0, 10), Error);
  for (const char* text : {"-1", "10.5", "nan", "inf", "", "1,5", "2 ", "x"}) {
    config.override_with("a", "ratio", text);
    EXPECT_THROW(config.get_number("a", "ratio", 2.5, 0, 10), Error) << text;
  }
}

TEST_F(ConfigTest, AListenersVetoUndoesTheChange) {
  Config config;
  config.override_with("ken", "delay", "1");
  config.on_change([&](const std::string&, const std::string&) { config.get_int("ken", "delay", 0, 0, 10); });
  EXPECT_THROW(config.set("ken", "delay", "many"), Error);
  EXPECT_EQ(config.get("ken", "delay"), "1");
  config.set("ken", "delay", "2");
  EXPECT_EQ(config.get("ken", "delay"), "2");
}

TEST_F(ConfigTest, ReloadsWhatMayChange) {
  Config config;
  const std::string kept = directory + "/local.ini";
  std::vector<std::string> heard;
  config.override_with("ken", "delay", "1");
  config.override_with("ken", "limit", "1");
  config.override_with("log", "level", "info");
  config.override_with("chttpd", "port", "1");
  config.keep_changes_in(kept);
  config.set("ken", "batch", "1");
  config.on_change([&](const std::string& section, const std::string& key) {
    config.get_int("ken", "delay", 0, 0, 10);
    heard.push_back(section + "." + key + "=" + config.get(section, key, "-"));
  });
  const auto reload = [&](const std::string& text) {
    return config.reload(
        [&](Config& fresh) {
          fresh.load(file(text));
          fresh.keep_changes_in(kept);
        },
        [](const std::string& section, const std::string&) { return section != "chttpd"; });
  };
  const Config::Names port{{"chttpd", "port"}};
  EXPECT_EQ(reload("[ken]\ndelay = 2\n[log]\nlevel = info\n[chttpd]\nport = 2\n"), port);
  EXPECT_EQ(heard, (std::vector<std::string>{"ken.delay=2", "ken.limit=-"}));
  EXPECT_EQ(config.get("chttpd", "port"), "1");
  EXPECT_EQ(config.get("ken", "batch"), "1");  // in the file of changes

  EXPECT_THROW(reload("[ken]\ndelay = 3\nlimit = 3\n[log\n"), Error);
  EXPECT_THROW(reload("[ken]\ndelay = 30\nlimit = 3\n[log]\nlevel = info\n"), Error);
  EXPECT_EQ(config.get("ken", "delay"), "2");
  EXPECT_EQ(config.get("ken", "limit"), std::nullopt);
  EXPECT_EQ(heard.back(), "ken.limit=-");

  // What was read is what the next change writes.
  std::ofstream(kept) << "[ken]\nlimit = 4\n";
  EXPECT_EQ(reload("[ken]\ndelay = 2\n[log]\nlevel = info\n"), port);
  config.set("log", "level", "debug");
  Config next;
  next.load(kept);
  EXPECT_EQ(next.all(), (Config::Sections{{"ken", {{"limit", "4"}}}, {"log", {{"level", "debug"}}}}));
}

// Undoing a vetoed change keeps what other threads have set meanwhile, and the listeners' last calls have the
// final values.
TEST_F(ConfigTest, ChangesOfSeveralThreadsAreSerialized) {
  Config config;
  config.keep_changes_in(directory + "/local.ini");
  std::atomic<std::int64_t> heard[3] = {};
  config.on_change([&](const std::string& section, const std::string&) {
    for (int i = 0; i < 3; ++i) heard[i] = config.get_int(section, std::to_string(i), 0, 0, 100);
  });
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&config, key = std::to_string(i)] {
      for (int n = 1; n <= 100; ++n) {
        config.set("s", key, std::to_string(n));
        EXPECT_THROW(config.set("s", key, "101"), Error);
        EXPECT_EQ(config.get("s", key), std::to_string(n));
      }
    });
  }
  threads.clear();
  const Config::Sections set{{"s", {{"0", "100"}, {"1", "100"}, {"2", "100"}}}};
  EXPECT_EQ(config.all(), set);
  for (const auto& value : heard) EXPECT_EQ(value, 100);
  Config again;
  again.keep_changes_in(directory + "/local.ini");
  EXPECT_EQ(again.all(), set);
}

TEST_F(ConfigTest, BadInputIsNamed) {
  Config config;
  EXPECT_THROW(config.load(directory + "/missing.ini"), Error);
  EXPECT_THROW(config.load(directory), Error);
  EXPECT_NO_THROW(config.load(file("")));
  EXPECT_THROW(config.load(file("[a]\nthis is no setting\n")), Error);
  config.override_with("a", "n", "x");
  EXPECT_THROW(config.get_int("a", "n", 0, 0, 9), Error);
  EXPECT_THROW(config.get_bool("a", "n", true), Error);
  EXPECT_THROW(config.set("a", "b", "line\nbreak"), Error);
  EXPECT_THROW(config.set("", "b", "x"), Error);
}

}  // namespace
}  // namespace divan
