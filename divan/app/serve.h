// `divan serve` and `divan worker`.
#pragma once

#include <string>
#include <vector>

#include "divan/app/server.h"

namespace divan::app {

struct ServeOptions {
  ServerSettings server;
  std::string config_file;
  std::vector<std::pair<std::string, std::string>> chttpd;  // settings of [chttpd] from the command line
  std::string store;                                        // empty: from the settings
  std::string durability;
  std::string fauxton;
};

/// Runs until SIGTERM or SIGINT; returns the exit status. `environment` as in main(). A signal before the
/// server listens ends the process.
int serve(const ServeOptions& options, const char* const* environment);

}  // namespace divan::app
