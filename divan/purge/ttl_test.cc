#include "divan/purge/ttl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/base/error.h"

namespace divan::purge {
namespace {

using std::chrono::seconds;

TEST(AutoPurgeTtl, PeriodsHaveCouchDbsForm) {
  EXPECT_EQ(parse_period("1_s"), seconds(1));
  EXPECT_EQ(parse_period("30_min"), seconds(1800));
  EXPECT_EQ(parse_period("8_hours"), seconds(8 * 3600));
  EXPECT_EQ(parse_period("2_days"), seconds(2 * 86'400));
  EXPECT_EQ(parse_period("3_weeks"), seconds(21 * 86'400));
  EXPECT_EQ(parse_period("1_month"), seconds(30 * 86'400));
  EXPECT_EQ(parse_period("2_y"), seconds(730 * 86'400));
  for (const char* text : {"", "_", "3", "3_", "_days", "0_days", "-1_days", "3 days", "3_fortnights",
                           "3_Days", "99999999999999999999_s", "1001_years", "infinity", "monday"})
    EXPECT_EQ(parse_period(text), std::nullopt) << text;
}

TEST(AutoPurgeTtl, SettingsAreChecked) {
  for (const char* valid :
       {"{}", R"({"deleted_document_ttl":"infinity"})", R"({"deleted_document_ttl":"3_mon"})"})
    EXPECT_NO_THROW(check_auto_purge(valid)) << valid;
  const auto reason = [](const char* json) {
    try {
      check_auto_purge(json);
    } catch (const Error& error) { return error.reason(); }
    return std::string("valid");
  };
  EXPECT_EQ(reason("[]"), "malformed auto purge body");
  EXPECT_EQ(reason(R"({"ttl":1})"), "invalid auto purge property");
  EXPECT_EQ(reason(R"({"deleted_document_ttl":1})"), "deleted_document_ttl must be a valid string");
  EXPECT_EQ(reason(R"({"deleted_document_ttl":"3"})"), "deleted_document_ttl must be a valid string");
}

TEST(AutoPurgeTtl, ADatabasesOwnSettingsComeFirst) {
  EXPECT_EQ(deleted_document_ttl("", ""), std::nullopt);
  EXPECT_EQ(deleted_document_ttl("", "1_s"), seconds(1));
  EXPECT_EQ(deleted_document_ttl("{}", "1_s"), seconds(1));
  EXPECT_EQ(deleted_document_ttl("{}", "infinity"), std::nullopt);
  EXPECT_EQ(deleted_document_ttl(R"({"deleted_document_ttl":"2_s"})", "1_s"), seconds(2));
  EXPECT_EQ(deleted_document_ttl(R"({"deleted_document_ttl":"infinity"})", "1_s"), std::nullopt);
}

}  // namespace
}  // namespace divan::purge
