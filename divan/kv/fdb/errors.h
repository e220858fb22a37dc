// FoundationDB's errors as those of the store.
#pragma once

#include "divan/kv/error.h"
#include "divan/kv/fdb/api.h"

namespace divan::kv::fdb {

/// The store's error for one of the client's. What has no code of its own there becomes process_behind if
/// another try may help, and io_error if not.
Error error_of(const Api& api, FdbError code);

}  // namespace divan::kv::fdb
