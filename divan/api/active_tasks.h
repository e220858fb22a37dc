// Background work in the form of /_active_tasks.
#pragma once

#include "divan/api/context.h"
#include "divan/compaction/compactor.h"

namespace divan::api {

/// Appends a running build job as a JSON object. The remaining changes are counted by this function, so that
/// builds that have not committed a batch yet are included, and no build shows 100 % while its index is
/// behind.
void append_build_task(std::string& out, const Context& context, kv::Transaction& tx, const jobs::Job& job);

/// Appends a running replication after a comma, unless the job has other data, which a client has added.
void append_replication_task(std::string& out, const Context& context, kv::Transaction& tx,
                             const jobs::Job& job);

/// Appends a compaction of this process.
void append_compaction_task(std::string& out, const Context& context, kv::Transaction& tx,
                            const compaction::Running& compaction);

}  // namespace divan::api
