// `divan jobs watch`: the job queue as it changes. All go on until Ctrl-C or an error, which is thrown.
#pragma once

#include "divan/app/answer.h"

namespace divan::app {

/// All types and their counts, every `interval`.
int watch_types(const QueryOptions& options, std::chrono::milliseconds interval);

/// A type's counts, and its running and failed jobs (of both the first hundred), every `interval`.
int watch_type(const QueryOptions& options, const std::string& type, std::chrono::milliseconds interval);

/// Each change of one job, until it ends: 0 if it is finished then, 1 if it is failed, cancelled or removed.
int watch_job(const QueryOptions& options, std::string_view type, std::string_view id);

}  // namespace divan::app
