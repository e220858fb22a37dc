// `divan status` and `divan updates`: a look at a running server, as tables for people or as --json for
// programs.
#pragma once

#include "divan/app/command_line.h"

namespace divan::app {

void show_status(const QueryOptions& options);
/// The feed of updates; with `go_on` it goes on until the user ends it, or the server, which is an error.
void show_updates(const QueryOptions& options, bool go_on);

}  // namespace divan::app
