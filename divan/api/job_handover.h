// Jobs on their way to a request that waits for them.
#pragma once

#include <functional>
#include <memory>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/jobs/acceptor.h"
#include "divan/jobs/queue.h"

namespace divan::api {

/// co_await: runs a transaction that adds a job, and makes the poll of jobs::Acceptor::poll_for_add() unless
/// it is null: then one commit adds the job and accepts it for a request that waits. `add` may be called
/// several times, and must be valid until the end.
Async<jobs::Queue::Added> add_with_poll(const Context& context, Call& call,
                                        const std::shared_ptr<jobs::Acceptor::Poll>& poll,
                                        const std::function<jobs::Queue::Added(kv::Transaction&)>& add);

/// co_await: releases accepted jobs that no worker has received (jobs::Acceptor::release_undelivered()).
Async<void> release_undelivered(const Context& context, Call& call);

}  // namespace divan::api
