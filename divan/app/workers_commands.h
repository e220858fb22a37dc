// `divan workers list|watch`: who works.
#pragma once

#include "divan/app/command_line.h"

namespace divan::app {

/// As add_jobs_commands().
void add_workers_commands(CLI::App& app, Command& command);

}  // namespace divan::app
