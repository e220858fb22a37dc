// What a command that opens a store by itself works with.
#pragma once

#include "divan/base/clock.h"
#include "divan/base/config.h"
#include "divan/base/rng.h"

namespace divan::app {

/// The environment of a command that opens a store itself: settings come from environment variables only.
struct CommandEnvironment {
  /// Throws bad_request naming the unknown setting.
  CommandEnvironment();

  const SystemClock clock;
  SystemRng rng;
  Config config;
};

}  // namespace divan::app
