// What is said of a job that is added, wherever that is.
#pragma once

#include "divan/api/body.h"
#include "divan/jobs/queue.h"

namespace divan::api {

/// The members of a request to add a job, beside those that name it.
inline constexpr std::string_view kAddMembers[] = {"data", "scheduled_at", "priority", "schedule"};
/// The same, with the job's id, and with its type.
inline constexpr std::string_view kBulkAddMembers[] = {"id", "data", "scheduled_at", "priority", "schedule"};
inline constexpr std::string_view kTransactAddMembers[] = {"type",         "id",       "data",
                                                           "scheduled_at", "priority", "schedule"};

/// Throws bad_request.
jobs::Queue::AddOptions add_options(const Body& body);

/// Lasts as long as the body.
std::string_view data_of(const Body& body);

}  // namespace divan::api
