// `divan jobs`, as the command line has it.
#pragma once

#include "divan/app/command_line.h"

namespace divan::app {

/// Adds `jobs` and its subcommands to the program. When the command line, parsed, has one of them, it is put
/// into `command`, which must live until then.
void add_jobs_commands(CLI::App& app, Command& command);

}  // namespace divan::app
