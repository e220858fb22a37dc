#include "divan/kv/error.h"

namespace divan::kv {
namespace {

struct Description {
  int status;
  const char* name;
  const char* reason;
};

Description describe(ErrorCode code) {
  switch (code) {
    case ErrorCode::transaction_too_old:
      return {503, "transaction_too_old", "The operation took longer than the 5 seconds of a transaction."};
    case ErrorCode::not_committed:
      return {503, "not_committed", "Another transaction changed the same keys; try again."};
    case ErrorCode::commit_unknown_result:
      return {503, "commit_unknown_result", "It is not known whether the transaction was committed."};
    case ErrorCode::transaction_cancelled: return {503, "transaction_cancelled", "The store is closing."};
    case ErrorCode::transaction_timed_out:
      return {503, "transaction_timed_out", "The transaction could not be done in time; try again."};
    case ErrorCode::too_many_watches: return {503, "too_many_watches", "The store has too many watches."};
    case ErrorCode::accessed_unreadable:
      return {500, "accessed_unreadable",
              "A versionstamped value was read before its transaction was committed."};
    case ErrorCode::process_behind:
      return {503, "process_behind", "The store is behind or overloaded; try again."};
    case ErrorCode::io_error: return {500, "io_error", "The store cannot read or write its files."};
    case ErrorCode::client_invalid_operation:
      return {500, "client_invalid_operation", "The store was called in a way that it does not allow."};
    case ErrorCode::key_outside_legal_range:
      return {500, "key_outside_legal_range", "Keys that begin with byte 0xff are reserved."};
    case ErrorCode::inverted_range: return {500, "inverted_range", "A range ends before it begins."};
    case ErrorCode::used_during_commit:
      return {500, "used_during_commit", "A committed transaction was used again without a reset."};
    case ErrorCode::transaction_too_large:
      return {413, "transaction_too_large", "The transaction exceeds 10,000,000 bytes."};
    case ErrorCode::key_too_large: return {413, "key_too_large", "A key exceeds 9,900 bytes."};
    case ErrorCode::value_too_large: return {413, "value_too_large", "A value exceeds 100,000 bytes."};
  }
  return {500, "unknown_error", "Unknown error of the store."};
}

}  // namespace

Error::Error(ErrorCode code, const std::string& detail)
    : divan::Error(
          describe(code).status, describe(code).name,
          detail.empty() ? describe(code).reason : std::string(describe(code).reason) + " " + detail),
      code_(code) {}

bool Error::retryable() const {
  switch (code_) {
    case ErrorCode::transaction_too_old:
    case ErrorCode::not_committed:
    case ErrorCode::commit_unknown_result:
    case ErrorCode::process_behind: return true;
    default: return false;
  }
}

}  // namespace divan::kv
