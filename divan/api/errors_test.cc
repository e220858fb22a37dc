#include "divan/api/errors.h"

#include <gtest/gtest.h>

namespace divan::api {
namespace {

using kv::ErrorCode;

// A handler for one of the two types must not catch the other.
static_assert(!std::is_base_of_v<Error, kv::Error> && !std::is_base_of_v<kv::Error, Error>);
static_assert(!std::is_convertible_v<kv::Error, Error>);

TEST(HttpErrors, TheStoresErrorsHaveTheirNameReasonAndStatus) {
  const Error conflict = http_error(kv::Error(ErrorCode::not_committed));
  EXPECT_EQ(conflict.status(), 503);
  EXPECT_EQ(conflict.name(), "not_committed");
  EXPECT_EQ(conflict.reason(), "Another transaction changed the same keys; try again.");
  EXPECT_EQ(http_error(kv::Error(ErrorCode::io_error, "EIO.")).reason(),
            "The store cannot read or write its files. EIO.");
  EXPECT_STREQ(kv::Error(ErrorCode::io_error, "EIO.").what(),
               "io_error: The store cannot read or write its files. EIO.");
}

TEST(HttpErrors, Statuses) {
  const auto status = [](ErrorCode code) { return http_error(kv::Error(code)).status(); };
  for (const auto code :
       {ErrorCode::transaction_too_old, ErrorCode::not_committed, ErrorCode::commit_unknown_result,
        ErrorCode::transaction_cancelled, ErrorCode::transaction_timed_out, ErrorCode::too_many_watches,
        ErrorCode::process_behind})
    EXPECT_EQ(status(code), 503) << kv::Error(code).name();
  for (const auto code :
       {ErrorCode::transaction_too_large, ErrorCode::key_too_large, ErrorCode::value_too_large})
    EXPECT_EQ(status(code), 413) << kv::Error(code).name();
  for (const auto code :
       {ErrorCode::accessed_unreadable, ErrorCode::io_error, ErrorCode::client_invalid_operation,
        ErrorCode::key_outside_legal_range, ErrorCode::inverted_range, ErrorCode::used_during_commit})
    EXPECT_EQ(status(code), 500) << kv::Error(code).name();
}

}  // namespace
}  // namespace divan::api
