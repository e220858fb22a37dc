// The options of a job in requests that add jobs.
#pragma once

#include "divan/api/body.h"
#include "divan/jobs/queue.h"

namespace divan::api {

/// The members of a job in `_transact`.
inline constexpr std::string_view kTransactAddMembers[] = {
    "type",    "id",           "data",     "scheduled_at", "priority",    "schedule",
    "timeout", "max_attempts", "max_lost", "backoff_min",  "backoff_max", "max_runtime"};
/// The same where the path names the type; and where it also names the id.
inline constexpr MemberNames kBulkAddMembers = MemberNames(kTransactAddMembers).subspan(1);
inline constexpr MemberNames kAddMembers = MemberNames(kTransactAddMembers).subspan(2);

/// Throws bad_request.
jobs::Queue::AddOptions add_options(const Body& body);

/// The job's data; valid as long as the body.
std::string_view data_of(const Body& body);

}  // namespace divan::api
