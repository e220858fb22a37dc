#include "divan/kv/fdb/errors.h"

namespace divan::kv::fdb {
namespace {

constexpr FdbError kOperationCancelled = 1101;

}  // namespace

Error error_of(const Api& api, FdbError code) {
  switch (const auto known = static_cast<ErrorCode>(code); known) {
    case ErrorCode::transaction_too_old:
    case ErrorCode::not_committed:
    case ErrorCode::commit_unknown_result:
    case ErrorCode::transaction_cancelled:
    case ErrorCode::transaction_timed_out:
    case ErrorCode::too_many_watches:
    case ErrorCode::accessed_unreadable:
    case ErrorCode::process_behind:
    case ErrorCode::client_invalid_operation:
    case ErrorCode::key_outside_legal_range:
    case ErrorCode::inverted_range:
    case ErrorCode::used_during_commit:
    case ErrorCode::transaction_too_large:
    case ErrorCode::key_too_large:
    case ErrorCode::value_too_large: return Error(known);
    case ErrorCode::io_error:
    case ErrorCode::would_block: break;
  }
  if (code == kOperationCancelled) return Error(ErrorCode::transaction_cancelled);
  if (api.is(ErrorPredicate::maybe_committed, code))
    return Error(ErrorCode::commit_unknown_result, api.describe(code));
  if (api.is(ErrorPredicate::retryable, code)) return Error(ErrorCode::process_behind, api.describe(code));
  return Error(ErrorCode::io_error, "FoundationDB: " + api.describe(code));
}

}  // namespace divan::kv::fdb
