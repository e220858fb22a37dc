// What is said of a job that is added, wherever that is.
#pragma once

#include "divan/api/body.h"
#include "divan/jobs/queue.h"

namespace divan::api {

/// The members of a request to add a job.
inline constexpr std::string_view kTransactAddMembers[] = {
    "type",    "id",           "data",     "scheduled_at", "priority",    "schedule",
    "timeout", "max_attempts", "max_lost", "backoff_min",  "backoff_max", "max_runtime"};
/// The same where the type is given otherwise, and where the id is, too.
inline constexpr MemberNames kBulkAddMembers = MemberNames(kTransactAddMembers).subspan(1);
inline constexpr MemberNames kAddMembers = MemberNames(kTransactAddMembers).subspan(2);

/// Throws bad_request.
jobs::Queue::AddOptions add_options(const Body& body);

/// Lasts as long as the body.
std::string_view data_of(const Body& body);

}  // namespace divan::api
