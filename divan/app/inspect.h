// `divan status` and `divan updates`: the state of a running server, as tables or, with --json, as JSON.
#pragma once

#include "divan/app/command_line.h"

namespace divan::app {

void show_status(const QueryOptions& options);
/// Shows the updates feed. With `follow_feed`, follows it until the user interrupts it; throws if the server
/// ends it.
void show_updates(const QueryOptions& options, bool follow_feed);

}  // namespace divan::app
