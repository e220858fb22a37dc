#include "divan/docs/design_document.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "divan/base/error.h"

namespace divan::docs {
namespace {

std::string refusal(std::string_view body) {
  try {
    check_design_members(body);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return "";
}

std::string must_have(std::string_view path, std::string_view type) {
  return fmt::format("invalid_design_doc: `{}` field must have {} type", path, type);
}

TEST(DesignDocument, MembersHaveTheirTypes) {
  for (const char* member : {"views", "options", "filters", "lists", "shows", "updates"}) {
    for (const char* value : {"1", "null", "[]", "\"text\"", "true"})
      EXPECT_EQ(refusal(fmt::format(R"({{"{}":{}}})", member, value)), must_have(member, "object"));
    EXPECT_EQ(refusal(fmt::format(R"({{"{}":{{}}}})", member)), "");
  }
  for (const char* member : {"filters", "lists", "shows", "updates"}) {
    EXPECT_EQ(refusal(fmt::format(R"({{"{}":{{"a":"f","b":1}}}})", member)),
              must_have(std::string(member) + ".b", "string or object"));
    EXPECT_EQ(refusal(fmt::format(R"({{"{}":{{"a":"f","b":{{}}}}}})", member)), "");
  }
  for (const char* option : {"include_design", "local_seq", "partitioned"}) {
    EXPECT_EQ(refusal(fmt::format(R"({{"options":{{"{}":"true"}}}})", option)),
              must_have(std::string("options.") + option, "boolean"));
    EXPECT_EQ(refusal(fmt::format(R"({{"options":{{"{}":false}}}})", option)), "");
  }
  EXPECT_EQ(refusal(R"({"language":null})"), must_have("language", "string"));
  EXPECT_EQ(refusal(R"({"rewrites":{}})"), must_have("rewrites", "array or string"));
  EXPECT_EQ(refusal(R"({"validate_doc_update":[]})"), must_have("validate_doc_update", "object or string"));
  EXPECT_EQ(refusal(R"({"language":"x","rewrites":[],"validate_doc_update":{}})"), "");
  EXPECT_EQ(refusal(R"({"rewrites":"f","validate_doc_update":"f"})"), "");
  // Members that CouchDB does not know are not checked.
  EXPECT_EQ(refusal(R"({"autoupdate":false,"indexes":1,"options":{"other":1},"x":null})"), "");
}

TEST(DesignDocument, ViewsAreObjectsWithAMapFunction) {
  EXPECT_EQ(refusal(R"({"views":{"lib":"text"}})"), must_have("views.lib", "object"));
  EXPECT_EQ(refusal(R"({"views":{"lib":{"map":{}}}})"), must_have("views.lib.map", "string"));
  EXPECT_EQ(refusal(R"({"views":{"lib":{"a":1}}})"), "");
  EXPECT_EQ(refusal(R"({"views":{"v":[]}})"), must_have("views.v", "object"));
  EXPECT_EQ(refusal(R"({"views":{"a":{"map":"f"},"v":{"map":null}}})"), must_have("views.v.map", "string"));
  EXPECT_EQ(refusal(R"({"views":{"v":{"map":"f","reduce":null}}})"), must_have("views.v.reduce", "string"));
  EXPECT_EQ(refusal(R"({"views":{"v":{"map":"f","reduce":"g","options":{}}}})"), "");
  EXPECT_EQ(refusal(R"({"views":{"a\"b":{"reduce":"_sum"}}})"),
            "invalid_design_doc: View `a\"b` must contain map function");
}

TEST(DesignDocument, LanguagesOtherThanJavaScript) {
  EXPECT_EQ(refusal(R"({"language":"erlang","views":{"v":{"map":1}}})"), must_have("views.v.map", "string"));
  EXPECT_EQ(refusal(R"({"language":"query","views":{"v":{"map":{},"reduce":"_count"}}})"), "");
  EXPECT_EQ(refusal(R"({"language":"query","views":{"v":{"map":"f"}}})"), must_have("views.v.map", "object"));
}

TEST(DesignDocument, PartitionedViewsNeedAPartitionedDatabase) {
  EXPECT_EQ(refusal(R"({"options":{"partitioned":true}})"), "");
  EXPECT_NO_THROW(check_is_not_partitioned(R"({"options":{"partitioned":false}})"));
  EXPECT_THROW(check_is_not_partitioned(R"({"options":{"partitioned":true}})"), Error);
}

// The first in CouchDB's order, not in the document's.
TEST(DesignDocument, TheFirstErrorIsReported) {
  EXPECT_EQ(refusal(R"({"views":1,"updates":1,"filters":{"f":1}})"),
            must_have("filters.f", "string or object"));
  EXPECT_EQ(refusal(R"({"views":{"v":{"map":"f","reduce":1},"lib":1}})"), must_have("views.lib", "object"));
}

}  // namespace
}  // namespace divan::docs
