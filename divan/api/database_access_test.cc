#include "divan/api/database_access.h"

#include <gtest/gtest.h>

#include "divan/base/json.h"

namespace divan::api {
namespace {

using enum DatabaseAccess;

User user(std::string name, std::vector<std::string> roles = {}) {
  return {.name = std::move(name), .admin = false, .roles = std::move(roles)};
}

TEST(DatabaseAccess, IsThatOfNamesAndRoles) {
  const std::string_view security =
      R"({"admins":{"names":["ann"],"roles":["chiefs"]},"members":{"names":["bob"],"roles":["staff"]}})";
  EXPECT_EQ(access_of(user("ann"), security), admin);
  EXPECT_EQ(access_of(user("x", {"chiefs"}), security), admin);
  EXPECT_EQ(access_of(user("bob"), security), member);
  EXPECT_EQ(access_of(user("x", {"other", "staff"}), security), member);
  EXPECT_EQ(access_of(user("x", {"ann", "bob"}), security), none);
  EXPECT_EQ(access_of(user("staff"), security), none);
  EXPECT_EQ(access_of(user(""), security), none);
  EXPECT_EQ(access_of({.name = "root", .admin = true}, security), admin);
}

TEST(DatabaseAccess, ADatabaseWithoutMembersIsPublic) {
  for (const auto* security : {"{}", R"({"members":{}})", R"({"members":{"names":[],"roles":[]}})",
                               R"({"admins":{"names":["ann"]}})", R"({"readers":{"names":[]}})"}) {
    EXPECT_EQ(access_of(user(""), security), member) << security;
    EXPECT_EQ(access_of(user("bob"), security), member) << security;
  }
  EXPECT_EQ(access_of(user("ann"), R"({"admins":{"names":["ann"]}})"), admin);
  EXPECT_EQ(access_of(user("ann"), kPublicSecurity), member);
}

TEST(DatabaseAccess, WithoutAStoredObjectIsForAdministratorsOfTheServer) {
  EXPECT_EQ(access_of(user("ann", {"a"}), kDefaultSecurity), none);
  EXPECT_EQ(access_of(user(""), kDefaultSecurity), none);
}

TEST(DatabaseAccess, ReadersAreMembers) {
  EXPECT_EQ(access_of(user("ann"), R"({"readers":{"names":["ann"]}})"), member);
  EXPECT_EQ(access_of(user("bob"), R"({"readers":{"names":["ann"]}})"), none);
  EXPECT_EQ(access_of(user("ann"), R"({"readers":{"names":["ann"]},"members":{"names":["bob"]}})"), none);
}

TEST(DatabaseAccess, NamesMayBeEscaped) {
  const std::string_view escaped = R"({"\u006dembers":{"\u006eames":["x"]},"x":{"\u0061":"\u0061"}})";
  EXPECT_EQ(access_of(user(""), escaped), none);
  EXPECT_EQ(parse_security(escaped), R"({"members":{"names":["x"]},"x":{"a":"\u0061"}})");
  EXPECT_EQ(parse_security(R"({"members":{},"\u006dembers":{"names":["x"]}})"),
            R"({"members":{"names":["x"]}})");
}

// Such objects could be stored before they were checked.
TEST(DatabaseAccess, MalformedObjectsOpenNothing) {
  for (const auto* members : {"[]", "null", R"("ann")", R"({"names":"ann"})", R"({"names":{}})",
                              R"({"names":["ann",1]})", R"({"roles":null})", R"({"names":[""]})"}) {
    for (const auto* group : {"members", "readers"}) {
      const std::string security = std::string("{\"") + group + "\":" + members + "}";
      EXPECT_EQ(access_of(user("ann"), security), none) << security;
      EXPECT_EQ(access_of(user(""), security), none) << security;
    }
    const std::string admins = std::string(R"({"members":{"names":["x"]},"admins":)") + members + "}";
    EXPECT_EQ(access_of(user("ann"), admins), none) << admins;
  }
  // The other list counts.
  EXPECT_EQ(access_of(user("ann", {"staff"}), R"({"members":{"names":7,"roles":["staff"]}})"), member);
}

std::string refusal(std::string_view security) {
  try {
    parse_security(json::compact(security));
    return "";
  } catch (const Error& error) { return error.name() + ": " + error.reason(); }
}

TEST(DatabaseAccess, InvalidObjectsAreRefused) {
  for (const auto* valid :
       {"{}", kDefaultSecurity.data(), R"({"members":{"names":["ä"],"more":1},"cloudant":{"x":[]}})"})
    EXPECT_EQ(refusal(valid), "") << valid;
  EXPECT_EQ(refusal("[]"), "bad_request: The security object must be a JSON object.");
  EXPECT_EQ(refusal("null"), "bad_request: The security object must be a JSON object.");
  EXPECT_EQ(refusal(R"({"admins":[]})"), "bad_request: `admins` must be an object.");
  EXPECT_EQ(refusal(R"({"readers":1})"), "bad_request: `members` must be an object.");
  EXPECT_EQ(refusal(R"({"members":{"names":"ann"}})"),
            "bad_request: `names` of `members` must be a list of strings.");
  EXPECT_EQ(refusal(R"({"admins":{"roles":["a",null]}})"),
            "bad_request: `roles` of `admins` must be a list of strings.");
  const std::string large = R"({"x":")" + std::string(kv::kMaxValueBytes, 'x') + "\"}";
  EXPECT_EQ(refusal(large), "too_large: The security object is too large.");
}

}  // namespace
}  // namespace divan::api
