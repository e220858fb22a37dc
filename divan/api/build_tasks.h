// Index builds as they are shown in /_active_tasks.
#pragma once

#include "divan/api/context.h"

namespace divan::api {

/// Appends a running job that builds an index, as a JSON object. The remaining changes are counted now: a
/// build that has not committed a batch yet is shown as well, and no build is at 100 % while its index is
/// behind.
void append_build_task(std::string& out, const Context& context, kv::Transaction& tx, const jobs::Job& job);

}  // namespace divan::api
