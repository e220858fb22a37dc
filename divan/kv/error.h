// The errors of the store, with FoundationDB's codes
// (https://apple.github.io/foundationdb/api-error-codes.html).
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "divan/base/error.h"

namespace divan::kv {

enum class ErrorCode {
  transaction_too_old = 1007,       // reads or commit more than 5 s after the transaction began
  not_committed = 1020,             // another transaction changed what this one has read
  commit_unknown_result = 1021,     // the commit may have been made or may still be made
  transaction_cancelled = 1025,     // the database is closing
  transaction_timed_out = 1031,     // run() used all its tries, or the store does not respond
  too_many_watches = 1032,          // poll instead
  accessed_unreadable = 1036,       // read of a value that has a versionstamp before its commit
  process_behind = 1037,            // a process of the store is behind or overloaded
  io_error = 1510,                  // the disk or the files failed; the store accepts no more writes
  would_block = 1990,               // Divan's own: Transaction::forbid_blocking()
  client_invalid_operation = 2000,  // a malformed call
  key_outside_legal_range = 2004,   // keys that begin with 0xff are the engine's
  inverted_range = 2005,            // begin > end
  used_during_commit = 2017,        // the transaction has ended; reset() it first
  transaction_too_large = 2101,
  key_too_large = 2102,
  value_too_large = 2103,
};

/// An error of the store. A value type. Not a divan::Error: a handler for those must not swallow a conflict.
class Error : public std::exception {
 public:
  explicit Error(ErrorCode code, const std::string& detail = {});

  ErrorCode code() const { return code_; }
  /// The code's name in FoundationDB.
  std::string_view name() const;
  const std::string& reason() const { return reason_; }
  /// name: reason
  const char* what() const noexcept override { return what_.c_str(); }

  /// Returns true if the transaction may succeed when it is run again from its beginning.
  bool retryable() const;

  /// Returns true if the cause may pass, so that a later request may succeed. True of all that are retryable.
  bool transient() const;

  /// Returns true if a commit that throws this may have been made or may still be made.
  bool maybe_committed() const {
    return code_ == ErrorCode::commit_unknown_result || code_ == ErrorCode::io_error;
  }

 private:
  ErrorCode code_;
  std::string reason_;
  std::string what_;
};

}  // namespace divan::kv
