// Request bodies that are read as they arrive: those with attachments, and large ones (streamed_bodies() in
// routes.h).
//
// The server collects bodies of at most kMaxShortBody before it calls the handler. Larger ones are read when
// it is known that the user may send them, so that others cannot fill the memory; and those of each user are
// limited (docs/concurrency.md).
#pragma once

#include "divan/api/request_waiter.h"
#include "divan/base/memory_quota.h"

namespace divan::api {

/// The next part of a request's body: about `bytes`, or fewer. If the body is not streamed, all of it. Throws
/// as http::Exchange::take_streamed_body(), and client_closed_request (499).
Async<http::StreamedBodyPart> read_body(RequestWaiter& waiter, std::size_t bytes);

/// The memory that bodies hold, by user or, without one, by client.
using BodyMemory = MemoryQuota<std::string>;
inline constexpr MemoryLimits kBodyMemory{.all = 512 << 20, .of_one = 256 << 20, .share = 16 << 20};

/// Reads a streamed body, which is then that of the call. Throws service_unavailable (503) if the user's
/// requests hold too much memory, and as read_body().
Async<void> collect_body(const Context& context, Call& call);

/// Reads what is left of a streamed body, if it is little, so that the connection can be used for another
/// request.
Async<void> discard_body(const Context& context, Call& call);

}  // namespace divan::api
