// `divan workers list|watch`: the workers of all roles.
#pragma once

#include "divan/app/command_line.h"

namespace divan::app {

/// Like add_jobs_commands().
void add_workers_commands(CLI::App& app, Command& command);

}  // namespace divan::app
