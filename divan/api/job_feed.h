// The state of one job as a feed.
#pragma once

#include "divan/api/feed.h"
#include "divan/api/routes.h"

namespace divan::api {

/// Responds with the feed. Throws not_found if there is no such job.
Async<RouteResult> follow_job(const Context& context, Call& call, const std::string& type,
                              const std::string& id, FeedOptions options);

}  // namespace divan::api
