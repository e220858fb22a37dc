#include "divan/kv/error.h"

namespace divan::kv {
namespace {

struct Description {
  const char* name;
  const char* reason;
};

Description describe(ErrorCode code) {
  switch (code) {
    case ErrorCode::transaction_too_old:
      return {"transaction_too_old", "The operation took longer than the 5 seconds of a transaction."};
    case ErrorCode::not_committed:
      return {"not_committed", "Another transaction changed the same keys; try again."};
    case ErrorCode::commit_unknown_result:
      return {"commit_unknown_result", "It is not known whether the transaction was committed."};
    case ErrorCode::transaction_cancelled: return {"transaction_cancelled", "The store is closing."};
    case ErrorCode::transaction_timed_out:
      return {"transaction_timed_out", "The transaction could not be done in time; try again."};
    case ErrorCode::too_many_watches: return {"too_many_watches", "The store has too many watches."};
    case ErrorCode::accessed_unreadable:
      return {"accessed_unreadable", "A versionstamped value was read before its transaction was committed."};
    case ErrorCode::process_behind:
      return {"process_behind", "The store is behind or overloaded; try again."};
    case ErrorCode::io_error: return {"io_error", "The store cannot read or write its files."};
    case ErrorCode::would_block: return {"would_block", "A read would block its thread."};
    case ErrorCode::client_invalid_operation:
      return {"client_invalid_operation", "The store was called in a way that it does not allow."};
    case ErrorCode::key_outside_legal_range:
      return {"key_outside_legal_range", "Keys that begin with byte 0xff are reserved."};
    case ErrorCode::inverted_range: return {"inverted_range", "A range ends before it begins."};
    case ErrorCode::used_during_commit:
      return {"used_during_commit", "A committed transaction was used again without a reset."};
    case ErrorCode::transaction_too_large:
      return {"transaction_too_large", "The transaction exceeds 10,000,000 bytes."};
    case ErrorCode::key_too_large: return {"key_too_large", "A key exceeds 9,900 bytes."};
    case ErrorCode::value_too_large: return {"value_too_large", "A value exceeds 100,000 bytes."};
  }
  return {"unknown_error", "Unknown error of the store."};
}

}  // namespace

Error::Error(ErrorCode code, const std::string& detail)
    : code_(code),
      reason_(detail.empty() ? describe(code).reason : std::string(describe(code).reason) + " " + detail),
      what_(std::string(describe(code).name) + ": " + reason_) {}

std::string_view Error::name() const { return describe(code_).name; }

bool Error::retryable() const {
  switch (code_) {
    case ErrorCode::transaction_too_old:
    case ErrorCode::not_committed:
    case ErrorCode::process_behind: return true;
    default: return false;
  }
}

bool Error::transient() const {
  return retryable() || code_ == ErrorCode::commit_unknown_result ||
         code_ == ErrorCode::transaction_cancelled || code_ == ErrorCode::transaction_timed_out ||
         code_ == ErrorCode::too_many_watches;
}

}  // namespace divan::kv
