// FoundationDB's errors as those of the store.
#pragma once

#include "divan/kv/error.h"
#include "divan/kv/fdb/api.h"

namespace divan::kv::fdb {

/// The store's error for one of the client's. A code that the store does not have becomes
/// commit_unknown_result if the client says that the commit may have been made, process_behind if it calls
/// the code retryable, and io_error otherwise.
Error error_of(const Api& api, FdbError code);

}  // namespace divan::kv::fdb
