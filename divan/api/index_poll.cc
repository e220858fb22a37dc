#include "divan/api/index_poll.h"

#include <chrono>

#include "divan/api/index_waits.h"
#include "divan/api/request_waiter.h"
#include "divan/base/error.h"
#include "divan/docs/reader.h"
#include "divan/index/builder.h"
#include "divan/index/builds.h"

namespace divan::api {
namespace {

using index::views::Update;

// Interval at which a request that waits for an index polls it, in addition to its watches.
constexpr std::chrono::milliseconds kMaxPollInterval{5'000};
// The same without watches, of which the store may have too many.
constexpr std::chrono::milliseconds kPollInterval{500};

}  // namespace

Async<void> IndexPoll::wait(const std::function<bool()>& open) {
  if (open()) co_return;
  RequestWaiter waiter(context_, call_);
  waiter.wake_on_stop();
  std::optional<IndexWait> waiting;
  do {
    if (waiter.stopping()) throw Error(503, "service_unavailable", "The server is stopping.");
    if (!waiting || waiting->build_id() != build_id_) waiting.emplace(context_.index_waits, build_id_);
    bool must_poll = false;
    for (const auto& watch : watches_) {
      must_poll |= watch == nullptr;
      if (watch != nullptr) watch->on_end(waiter.callback());
    }
    co_await waiter.wait(must_poll ? kPollInterval : kMaxPollInterval);
  } while (!open());
}

bool IndexPoll::is_ready(kv::Transaction& tx, const docs::Database& database, const index::Index& index,
                         Update update) {
  watches_.clear();
  const index::IndexKeys keys(database, index.signature());
  if (!target_) target_ = docs::last_sequence(tx, database);
  const bool fresh = index::read_sequence(tx, keys, kv::Isolation::snapshot) >= *target_;
  if (fresh || update == Update::never) return true;
  if (auto id = index::build_id(database, index.signature()); id != build_id_) {
    build_id_ = std::move(id);
    failures_before_.reset();
  }
  if (failures_before_) {
    // A build that fails while the request waits for it is an error of the request.
    const auto job = context_.queue.find(tx, index.kind(), build_id_);
    if (job && job->failures > *failures_before_) throw Error(500, "index_build_failed", job->last_error);
  }
  // At each poll, since a build that was requested with a lower priority may have yielded to others.
  index::request_build(context_.queue, tx, database, index, index::kQueryPriority, context_.builder);
  if (!failures_before_) failures_before_ = context_.queue.find(tx, index.kind(), build_id_)->failures;
  if (update == Update::lazy) return true;
  watches_ = {tx.try_watch(keys.state()), context_.queue.watch(tx, index.kind(), build_id_)};
  return false;
}

}  // namespace divan::api
