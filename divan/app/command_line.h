// What the program's commands share: how they are told about the server, and how main() gets to run them.
#pragma once

#include <functional>

#include "divan/app/connection.h"

namespace CLI {
class App;
}

namespace divan::app {

/// What the command line asks for: does it and answers the program's exit status. Errors are thrown.
using Command = std::function<int()>;

struct QueryOptions {
  ConnectionOptions connection;
  bool json = false;  // print what the server answers
};

/// Adds --url, --user and --data-dir; the options must outlive the parsing.
void add_connection(CLI::App& command, ConnectionOptions& connection);

/// The same, and --json.
void add_query(CLI::App& command, QueryOptions& options);

}  // namespace divan::app
