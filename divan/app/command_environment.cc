#include "divan/app/command_environment.h"

#include <unistd.h>

#include "divan/app/settings.h"

namespace divan::app {

CommandEnvironment::CommandEnvironment() {
  set_defaults(config);
  load_environment(config, ::environ);
  check_all_settings(config);
}

}  // namespace divan::app
