#include "divan/app/settings.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "divan/base/error.h"
#include "divan/kv/embedded/temporary_store.h"

namespace divan::app {
namespace {

using testing::HasSubstr;

template <class Fn>
std::string reason_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& error) { return error.reason(); }
  return "none";
}

struct SettingsTest : testing::Test {
  kv::embedded::TemporaryDirectory directory;
  Config config;

  SettingsTest() { set_defaults(config); }

  std::string file(const std::string& text) const {
    const std::string path = directory.path() + "/settings.ini";
    std::ofstream(path) << text;
    return path;
  }
  std::string environment(const char* entry) {
    const char* const all[] = {"HOME=/root", entry, nullptr};
    return reason_of([&] { load_environment(config, all); });
  }
};

TEST_F(SettingsTest, TheDefaultsAreValidAndSettingsAreUnique) {
  check_all_settings(config);
  std::set<std::string> names;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(names.insert(setting.section + "/" + setting.key).second) << setting.key;
    EXPECT_FALSE(setting.description.empty()) << setting.key;
    EXPECT_EQ(config.get(setting.section, setting.key), setting.fallback);
    EXPECT_THAT(describe_settings(), HasSubstr("[" + setting.section + "] " + setting.key + " = "));
  }
}

TEST_F(SettingsTest, AFileWithUnknownSettingsIsRejected) {
  load_settings_file(config, file("[couchdb]\nmax_document_size = 5\n[admins]\neve = secret\n"));
  EXPECT_EQ(config.get("couchdb", "max_document_size"), "5");
  const auto reason = reason_of(
      [&] { load_settings_file(config, file("[chttpd]\nmax_conections = 5\n[httpd]\nport=1\n[x]\ny=z\n")); });
  EXPECT_THAT(reason,
              HasSubstr("settings.ini: Unknown setting [chttpd] max_conections; did you mean [chttpd] "
                        "max_connections?"));
  EXPECT_THAT(reason, HasSubstr("Unknown setting [httpd] port; did you mean [chttpd] port?"));
  EXPECT_THAT(reason, HasSubstr("Unknown setting [x] y."));
}

// Earlier versions wrote unknown settings without a check.
TEST_F(SettingsTest, UnknownSettingsInStoredChangesAreIgnored) {
  load_changes(config, file("[x]\ny = z\n[log]\nlevel = error\n"));
  EXPECT_EQ(config.get("log", "level"), "error");
  config.on_change(
      [this](const std::string& section, const std::string& key) { check_change(config, section, key); });
  EXPECT_EQ(config.erase("x", "y"), "z");
}

TEST_F(SettingsTest, VariablesOfTheEnvironment) {
  EXPECT_EQ(environment("DIVAN_CHTTPD_AUTH_ITERATIONS=7"), "none");
  EXPECT_EQ(config.get("chttpd_auth", "iterations"), "7");
  EXPECT_EQ(environment("DIVAN_ADMINS_EVE=secret"), "none");
  EXPECT_EQ(config.get("admins", "eve"), "secret");
  EXPECT_EQ(environment("DIVAN_CHTTPD_MAX_CONECTIONS=5"),
            "Unknown setting DIVAN_CHTTPD_MAX_CONECTIONS in the environment; did you mean "
            "DIVAN_CHTTPD_MAX_CONNECTIONS?");
  EXPECT_THAT(environment("DIVAN_COUCHDB_UUID=5"),
              HasSubstr("Unknown setting DIVAN_COUCHDB_UUID in the environment."));
  for (const char* entry : {"DIVAN_JWT_KEYS_hmac:_default=c2VjcmV0", "DIVAN_KEN_IGNORE_SHOP=true"})
    EXPECT_THAT(environment(entry), HasSubstr("set them in the settings file")) << entry;
  EXPECT_THAT(environment("DIVAN_CHTTP_PORT=5"), HasSubstr("did you mean DIVAN_CHTTPD_PORT?"));
  // Variables of other programs.
  const auto before = config.all();
  for (const char* entry :
       {"DIVAN_URL=http://h", "DIVAN_TEST_SECRET=x", "DIVAN_BENCH_JOBS=1", "DIVAN_=", "DIVAN"})
    EXPECT_EQ(environment(entry), "none") << entry;
  EXPECT_EQ(config.all(), before);
}

TEST_F(SettingsTest, ChangesAreAppliedOrRejected) {
  config.on_change(
      [this](const std::string& section, const std::string& key) { check_change(config, section, key); });
  const auto set = [&](const char* section, const char* key, const char* value) {
    return reason_of([&] { config.set(section, key, value); });
  };
  EXPECT_EQ(set("couchdb", "max_document_size", "100"), "none");
  EXPECT_EQ(config.get("couchdb", "max_document_size"), "100");
  EXPECT_THAT(set("couchdb", "max_document_size", "0"), HasSubstr("is not a number from 1 to 8000000"));
  EXPECT_EQ(config.get("couchdb", "max_document_size"), "100");
  EXPECT_THAT(set("chttpd", "port", "80"), HasSubstr("is only read at the start"));
  EXPECT_THAT(reason_of([&] { config.erase("chttpd", "port"); }), HasSubstr("is only read at the start"));
  EXPECT_EQ(config.get("chttpd", "port"), "5984");
  EXPECT_EQ(reason_of([&] { config.erase("couchdb", "max_document_size"); }), "none");
  EXPECT_THAT(set("httpd", "max_connections", "10"),
              HasSubstr("Unknown setting [httpd] max_connections; did you mean [chttpd] max_connections?"));
  EXPECT_EQ(config.get("httpd", "max_connections"), std::nullopt);
  EXPECT_EQ(set("ken.ignore", "db", "true"), "none");
}

}  // namespace
}  // namespace divan::app
