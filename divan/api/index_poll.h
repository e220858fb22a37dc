// Waits until an index has what was written before a request. The build that it waits for is the same job
// that ken adds: each index has at most one, so that it is never built twice at the same time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/index/views/params.h"

namespace divan::api {

/// One request's wait. Not thread-safe. The references must outlive it.
class IndexPoll {
 public:
  IndexPoll(const Context& context, Call& call) : context_(context), call_(call) {}

  /// Calls `open` until it returns true: at first, and when the index may have changed. `open` runs a
  /// transaction with is_ready(). Throws service_unavailable (503) if the server stops meanwhile.
  Async<void> wait(const std::function<bool()>& open);

  /// Returns true if the rows can be read now. Otherwise requests a build: with Update::lazy, and returns
  /// true; with Update::wait until the index has what was written before the first call. Throws
  /// index_build_failed (500) if a build fails meanwhile.
  bool is_ready(kv::Transaction& tx, const docs::Database& database, const index::Index& index,
                index::views::Update update);

 private:
  const Context& context_;
  Call& call_;
  std::string build_id_;                         // of the index, which may change
  std::optional<kv::Versionstamp> target_;       // the sequence that the index must have
  std::optional<std::int64_t> failures_before_;  // of the build, when it was first requested
  std::vector<std::shared_ptr<kv::Watch>> watches_;
};

}  // namespace divan::api
