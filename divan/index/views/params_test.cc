#include "divan/index/views/params.h"

#include <gmock/gmock.h>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::index::views {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

ViewParams parse(const Pairs& pairs) {
  ViewParams params;
  for (const auto& [name, text] : pairs) set_param(params, name, text);
  return params;
}

std::string refusal(const Pairs& pairs, bool view_reduces = false) {
  try {
    check_params(parse(pairs), view_reduces, Collation::unicode);
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return "";
}

constexpr const char* kIncompatible =
    "query_parse_error: `keys` is incompatible with `key`, `start_key` and `end_key`";
constexpr const char* kMultiKey =
    "query_parse_error: Multi-key fetches for reduce views must use `group=true`";

TEST(ViewParams, OneOfKeysIsARange) {
  const auto ends = [](const Pairs& pairs) {
    const auto params = one_key_as_range(parse(pairs));
    EXPECT_FALSE(params.keys);
    return params.start_key.value_or("-") + " " + params.end_key.value_or("-");
  };
  EXPECT_EQ(ends({{"keys", "[1]"}}), "1 1");
  // The last one counts.
  EXPECT_EQ(ends({{"keys", "[1]"}, {"key", "2"}}), "2 2");
  EXPECT_EQ(ends({{"key", "2"}, {"keys", "[1]"}}), "1 1");
  EXPECT_EQ(ends({{"keys", "[1]"}, {"keys", "[2]"}}), "2 2");
  EXPECT_EQ(ends({{"keys", "[1]"}, {"end_key", "2"}}), "1 2");
  EXPECT_EQ(refusal({{"keys", "[1]"}, {"key", "2"}}), "");
  EXPECT_EQ(refusal({{"keys", "[1]"}}, true), "");
}

TEST(ViewParams, KeysBesideARange) {
  for (const char* name : {"key", "start_key", "endkey"}) {
    EXPECT_EQ(refusal({{"keys", "[1,2]"}, {name, "1"}}), kIncompatible) << name;
    EXPECT_EQ(refusal({{name, "1"}, {"keys", "[]"}}), "") << name;
  }
  EXPECT_EQ(refusal({{"keys", "[1,2]"}, {"keys", "[3]"}}), kIncompatible);
  EXPECT_EQ(refusal({{"keys", "[3]"}, {"keys", "[1,2]"}}), kIncompatible);
  EXPECT_EQ(refusal({{"keys", "[1,2]"}, {"start_key_doc_id", "a"}}), "");
  EXPECT_EQ(refusal({{"keys", "[]"}, {"start_key", "2"}, {"end_key", "1"}}),
            "query_parse_error: No rows can match your key range, reverse your start_key and end_key or set "
            "descending=true");
  EXPECT_EQ(one_key_as_range(parse({{"keys", "[]"}, {"key", "1"}})).keys, std::vector<std::string>());
  for (const char* keys : {"1", "null", "{}", "\"a\""})
    EXPECT_EQ(refusal({{"keys", keys}}), "query_parse_error: `keys` must be an array of strings.");
}

TEST(ViewParams, KeysOfViewsThatReduce) {
  EXPECT_EQ(refusal({{"keys", "[]"}}, true), kMultiKey);
  EXPECT_EQ(refusal({{"keys", "[1,2]"}, {"group_level", "1"}}, true), kMultiKey);
  EXPECT_EQ(refusal({{"keys", "[1,2]"}, {"key", "1"}}, true), kMultiKey);
  EXPECT_EQ(refusal({{"keys", "[1,2]"}, {"group", "true"}}, true), "");
  EXPECT_EQ(refusal({{"keys", "[1,2]"}, {"reduce", "false"}}, true), "");
}

TEST(ViewParams, TheLevelCountsBeforeTheGroup) {
  const auto level = [](const Pairs& pairs) { return group_level(parse(pairs)); };
  EXPECT_EQ(level({}), 0u);
  EXPECT_EQ(level({{"group", "true"}}), UINT64_MAX);
  EXPECT_EQ(level({{"group", "true"}, {"group_level", "2"}}), 2u);
  EXPECT_EQ(level({{"group", "true"}, {"group_level", "0"}}), 0u);
  EXPECT_EQ(refusal({{"group", "true"}, {"group_level", "0"}}), "");
}

TEST(ViewParams, IrrelevantParametersAreValidatedToo) {
  EXPECT_EQ(refusal({{"stable", "x"}}), "query_parse_error: Invalid value for `stable`.");
  EXPECT_EQ(refusal({{"stable", "TRUE"}}), "query_parse_error: Invalid value for `stable`.");
  for (const char* name : {"attachments", "att_encoding_info"})
    EXPECT_EQ(refusal({{name, "x"}}), "query_parse_error: Invalid boolean parameter: \"x\"");
  EXPECT_EQ(refusal({{"stable", "true"}, {"attachments", "True"}, {"att_encoding_info", "false"}}), "");
  EXPECT_EQ(refusal({{"whatever", "x"}}), "");
}

// In a listing, a single one of `keys` can be combined with the range of the same key.
TEST(ViewParams, KeysOfListings) {
  const auto refuses = [](const Pairs& pairs) {
    try {
      check_keys(parse(pairs));
    } catch (const Error&) { return true; }
    return false;
  };
  EXPECT_FALSE(refuses({{"keys", R"(["a"])"}}));
  EXPECT_FALSE(refuses({{"keys", R"(["a"])"}, {"key", R"("a")"}}));
  EXPECT_TRUE(refuses({{"keys", R"(["a"])"}, {"key", R"("b")"}}));
  EXPECT_TRUE(refuses({{"keys", R"(["a","b"])"}, {"key", R"("a")"}}));
  EXPECT_FALSE(refuses({{"keys", "[]"}, {"key", R"("a")"}}));
}

}  // namespace
}  // namespace divan::index::views
