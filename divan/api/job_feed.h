// The state of one job as a feed.
#pragma once

#include "divan/api/feed.h"
#include "divan/api/routes.h"

namespace divan::api {

/// Begins the feed. Throws not_found if there is no such job.
RouteResult follow_job(const Context& context, const CallPtr& call, const std::string& type,
                       const std::string& id, const FeedOptions& options);

}  // namespace divan::api
