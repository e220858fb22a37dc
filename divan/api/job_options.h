// The members of requests that add a job.
#pragma once

#include "divan/api/body.h"
#include "divan/jobs/queue.h"

namespace divan::api {

/// The members of a job in `_transact`.
inline constexpr std::string_view kTransactAddMembers[] = {
    "type",    "id",           "data",     "scheduled_at", "priority",    "schedule",
    "timeout", "max_attempts", "max_lost", "backoff_min",  "backoff_max", "max_runtime"};
/// The same without `type`, which the path names; and also without `id`.
inline constexpr MemberNames kBulkAddMembers = MemberNames(kTransactAddMembers).subspan(1);
inline constexpr MemberNames kAddMembers = MemberNames(kTransactAddMembers).subspan(2);

/// The options of a job. Throws bad_request for an invalid one.
jobs::Queue::AddOptions add_options(const Body& body);

/// The job's data; valid as long as the body.
std::string_view data_of(const Body& body);

}  // namespace divan::api
