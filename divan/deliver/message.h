// The request that delivers a job.
#pragma once

#include <cstdint>
#include <string>

#include "divan/deliver/settings.h"
#include "divan/http_client/request.h"
#include "divan/jobs/attempts.h"

namespace divan::deliver {

/// Identifies the message of a job: the same in all attempts at a run with the same data.
std::string message_id(const jobs::AcceptedJob& job);

/// Moves the data of the job into the request. `now_ms`: milliseconds since 1970.
http_client::Request make_request(jobs::AcceptedJob& job, const Settings& settings, std::int64_t now_ms);

/// The request after a redirect: if that is to another origin, without header fields that are meant for the
/// first one. `url` is absolute. Throws bad_request if it is invalid.
http_client::Request redirected(http_client::Request request, const Settings& settings, std::string url);

}  // namespace divan::deliver
