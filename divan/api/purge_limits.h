// The limit of requests for purges.
#pragma once

#include <cstdint>

#include "divan/base/config.h"

namespace divan::api {

/// [purge] max_revisions_number: the maximum number of revisions in one request; INT64_MAX without a limit.
/// Throws bad_request if the setting is invalid.
std::int64_t max_purged_revisions(const Config& config);

}  // namespace divan::api
