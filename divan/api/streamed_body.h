// Request bodies that are read as they arrive: those with attachments.
#pragma once

#include "divan/api/request_waiter.h"

namespace divan::api {

/// http::ServerOptions::streamed_body: PUT of an attachment, and of a document with attachments after it.
/// Their sizes are limited by those who read them.
std::optional<std::uint64_t> streamed_body(const http::Request& head);

/// The next part of a request's body: about `bytes`, or fewer. If the body is not streamed, all of it. Throws
/// as http::Exchange::take_streamed_body(), and client_closed_request (499).
Async<http::StreamedBodyPart> read_body(RequestWaiter& waiter, std::size_t bytes);

/// Reads what is left of a streamed body, if it is little, so that the connection can be used for another
/// request.
Async<void> discard_body(const Context& context, Call& call);

}  // namespace divan::api
