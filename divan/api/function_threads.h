// The threads on which functions of design documents run, and feeds that test documents read.
#pragma once

#include "divan/base/fair_thread_pool.h"
#include "divan/docs/catalog.h"

namespace divan::api {

/// What runs on the threads for a database: one call of each kind at a time.
enum class FunctionUse : std::uint8_t { validation, feed, update };

/// The key of a database's calls in Context::function_threads.
inline FairThreadPool::Key function_key(std::int64_t database_number, FunctionUse use) {
  return 4 * database_number + static_cast<FairThreadPool::Key>(use);
}

}  // namespace divan::api
