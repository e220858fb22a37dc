#include "divan/api/job_handover.h"

namespace divan::api {

Async<jobs::Queue::Added> add_with_poll(const Context& context, Call& call,
                                        const std::shared_ptr<jobs::Acceptor::Poll>& poll,
                                        const std::function<jobs::Queue::Added(kv::Transaction&)>& add) {
  if (poll) {
    call.executor().admit();
    std::optional<jobs::Queue::Added> added;
    std::exception_ptr failure;
    try {
      added = co_await call.run(context.store, [&](kv::Transaction& tx) {
        auto one = add(tx);
        context.acceptor.run_poll(*poll, tx);
        return one;
      });
    } catch (...) { failure = std::current_exception(); }
    const bool without_poll = context.acceptor.end_add_poll(*poll, failure);
    co_await release_undelivered(context, call);
    if (added) co_return *std::move(added);
    if (!without_poll) std::rethrow_exception(failure);
  }
  co_return co_await call.run(context.store, [&](kv::Transaction& tx) { return add(tx); });
}

Async<void> release_undelivered(const Context& context, Call& call) {
  if (!context.acceptor.has_undelivered()) co_return;
  co_await call.executor().allow_blocking();
  context.acceptor.release_undelivered({});
}

}  // namespace divan::api
