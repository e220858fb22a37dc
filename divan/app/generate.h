// `divan generate`: manual pages, shell completions and a settings file, made from the command line's own
// description and from the table of settings.
#pragma once

#include "divan/app/command_line.h"

namespace divan::app {

/// Adds `generate` and its subcommands to the program, which has all other commands already. If the parsed
/// command line has one of them, it is assigned to `command`, which must outlive the parsing.
void add_generate(CLI::App& app, Command& command);

}  // namespace divan::app
