// Options that several commands share, and the type of commands that main() runs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "divan/app/connection.h"

namespace CLI {
class App;
}

namespace divan::app {

/// Runs a command and returns the program's exit status. Errors are thrown.
using Command = std::function<int()>;

struct QueryOptions {
  ConnectionOptions connection;
  bool json = false;  // print the server's response
};

/// Adds --url, --user and --data-dir. The options must outlive the parsing.
void add_connection(CLI::App& command, ConnectionOptions& connection);

/// Adds these options and --json.
void add_query(CLI::App& command, QueryOptions& options);

/// The two parts of an argument; `expected` names its form. Throws bad_request if one is missing.
std::pair<std::string, std::string> split_pair(const std::string& text, char separator,
                                               std::string_view expected);

}  // namespace divan::app
