// The environment of commands that open a store themselves.
#pragma once

#include "divan/base/clock.h"
#include "divan/base/config.h"
#include "divan/base/rng.h"

namespace divan::app {

/// The clock, random numbers and settings of a command that opens a store itself. Settings come from
/// environment variables only.
struct CommandEnvironment {
  /// Throws bad_request, with the setting's name, if a setting is unknown or invalid.
  CommandEnvironment();

  const SystemClock clock;
  SystemRng rng;
  Config config;
};

}  // namespace divan::app
