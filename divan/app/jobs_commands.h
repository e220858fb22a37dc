// `divan jobs` on the command line.
#pragma once

#include "divan/app/command_line.h"

namespace divan::app {

/// Adds `jobs` and its subcommands to the program. If the parsed command line has one of them, it is assigned
/// to `command`, which must outlive the parsing.
void add_jobs_commands(CLI::App& app, Command& command);

}  // namespace divan::app
