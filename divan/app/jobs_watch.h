// `divan jobs watch`: the job queue as it changes. Ctrl-C ends the program; errors are thrown.
#pragma once

#include "divan/app/response.h"

namespace divan::app {

/// Shows all types and their counts, every `interval`.
int watch_types(const QueryOptions& options, std::chrono::milliseconds interval);

/// Shows a type's counts, and its first hundred running and failed jobs each, every `interval`.
int watch_type(const QueryOptions& options, const std::string& type, std::chrono::milliseconds interval);

/// Shows each change of one job until it ends. Returns 0 if it is finished, 1 if it is failed, cancelled or
/// removed.
int watch_job(const QueryOptions& options, std::string_view type, std::string_view id);

}  // namespace divan::app
