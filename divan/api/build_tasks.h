// Index builds as they are shown in /_active_tasks.
#pragma once

#include "divan/api/context.h"

namespace divan::api {

/// Appends the task of a job that builds an index and runs, as a JSON object. What is to be done is counted
/// now: a build that has committed no batch yet is there, too, and none is at 100 % while its index is
/// behind.
void append_build_task(std::string& out, const Context& context, kv::Transaction& tx, const jobs::Job& job);

}  // namespace divan::api
