// The options of a server's parts, from its settings.
#pragma once

#include "divan/base/config.h"
#include "divan/http/server_options.h"
#include "divan/js/pool.h"
#include "divan/updates/sequencer.h"

namespace divan::app {

js::PoolOptions pool_options(const Config& config);
updates::SequencerOptions updates_options(const Config& config);
http::ServerOptions http_options(const Config& config);

}  // namespace divan::app
