#include "divan/api/function_call.h"

#include <functional>

#include "divan/base/error.h"
#include "divan/base/precompiled_test.h"

namespace divan::api {
namespace {

// The status and the name of the error that fn() throws.
std::string response_error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) { return std::to_string(error.status()) + " " + error.name(); }
  return "none";
}

std::string field(const http::Response& response, std::string_view name) {
  std::string values;
  for (const auto& header : response.headers) {
    if (http::equal_ignoring_case(header.name, name)) values += (values.empty() ? "" : "|") + header.value;
  }
  return values;
}

TEST(ApiFunctionCall, AResponseHasTheMembersOfTheObject) {
  const auto response = response_of(R"({"code":418,"headers":{"X-A":"b","x-c":7},"body":"\u00e4"})");
  EXPECT_EQ(response.status, 418);
  EXPECT_EQ(response.body, "ä");
  EXPECT_EQ(field(response, "X-A"), "b");
  EXPECT_EQ(field(response, "X-C"), "7");
  EXPECT_EQ(field(response, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(field(response, "Content-Security-Policy"), "sandbox");
  EXPECT_EQ(response_of("{}", 201).status, 201);
  EXPECT_EQ(field(response_of("{}"), "Content-Type"), "application/json");
  EXPECT_EQ(response_of(R"({"json":{"a":1}})").body, "{\"a\":1}\n");
  EXPECT_EQ(response_of(R"({"base64":"aGk="})").body, "hi");
  EXPECT_EQ(field(response_of(R"({"body":"","headers":{"content-type":"a/b"}})"), "Content-Type"), "a/b");
}

// The last of several contents counts.
TEST(ApiFunctionCall, TheOrderOfTheMembersCounts) {
  EXPECT_EQ(response_of(R"({"json":1,"body":"x"})").body, "x");
  EXPECT_EQ(response_of(R"({"body":"x","json":1})").body, "1\n");
  EXPECT_EQ(field(response_of(R"({"body":"x","json":1})"), "Content-Type"), "application/json");
}

TEST(ApiFunctionCall, FieldsOfTheServerAreIgnored) {
  const auto response = response_of(
      R"({"headers":{"content-length":"7","Transfer-Encoding":"x","Connection":"close","Upgrade":"x","Keep-Alive":"x"}})");
  EXPECT_EQ(response.headers.size(), 2u);  // Content-Type, Content-Security-Policy
}

TEST(ApiFunctionCall, InvalidResponsesAreErrors) {
  for (const std::string_view json :
       {R"("text")", "[]", "null", R"({"code":199})", R"({"code":600})", R"({"code":"200"})",
        R"({"code":200.5})", R"({"body":1})", R"({"base64":"?"})", R"({"base64":[]})", R"({"headers":"x"})",
        R"({"other":1})", R"({"headers":{"":"x"}})", R"({"headers":{"a b":"x"}})",
        R"({"headers":{"a:":"x"}})", R"({"headers":{"a":"x\r\ny"}})", R"({"headers":{"a":"x\ny"}})",
        R"({"headers":{"a":"\u0000"}})"}) {
    EXPECT_EQ(response_error_of([&] { response_of(json); }), "500 external_response_error");
  }
}

TEST(ApiFunctionCall, AThrownErrorHasCouchDbsStatus) {
  const auto thrown = [](const std::string& name) {
    return checked_result(std::string(R"({"error":[")" + name + R"(","why"]})"));
  };
  EXPECT_EQ(response_error_of([&] { thrown("bad_request"); }), "400 bad_request");
  EXPECT_EQ(response_error_of([&] { thrown("unauthorized"); }), "401 unauthorized");
  EXPECT_EQ(response_error_of([&] { thrown("forbidden"); }), "403 forbidden");
  EXPECT_EQ(response_error_of([&] { thrown("not_found"); }), "404 not_found");
  EXPECT_EQ(response_error_of([&] { thrown("not_acceptable"); }), "406 not_acceptable");
  EXPECT_EQ(response_error_of([&] { thrown("conflict"); }), "409 conflict");
  EXPECT_EQ(response_error_of([&] { thrown("mine"); }), "500 mine");
  EXPECT_EQ(response_error_of([&] { checked_result(std::string(R"({"error":[]})")); }), "500 unnamed_error");
  EXPECT_EQ(response_error_of([&] { checked_result(std::string(R"({"error":7})")); }), "500 unnamed_error");
}

TEST(ApiFunctionCall, AReasonIsCut) {
  try {
    checked_result(std::string(R"({"error":["a",")") + std::string(400, 'x') + [] {
      std::string text;
      for (int i = 0; i < 1000; ++i) text += "ä";
      return text;
    }() + R"("]})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.reason().size(), 1000u);
    EXPECT_TRUE(error.reason().ends_with("ä"));
  }
}

// A script may have taken control of the process.
TEST(ApiFunctionCall, InvalidJsonIsAnError) {
  EXPECT_EQ(checked_result(std::string(R"({"value":1})")), R"({"value":1})");
  EXPECT_EQ(response_error_of([&] { checked_result(std::string("{\"value\":")); }),
            "500 internal_server_error");
  EXPECT_EQ(response_error_of([&] { checked_result(std::string("{\"value\":\"\xff\"}")); }),
            "500 internal_server_error");
  EXPECT_EQ(response_error_of([&] {
              checked_result(js::Failure{js::FailureKind::timeout, "slow"});
            }),
            "500 render_error");
  EXPECT_EQ(response_error_of([&] {
              checked_result(js::Failure{js::FailureKind::timeout, "slow"}, "x");
            }),
            "500 x");
}

}  // namespace
}  // namespace divan::api
