#include "divan/app/command_line.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <cstdlib>

#include "divan/base/error.h"

namespace divan::app {
namespace {

void read_environment(const char* name, std::string& value) {
  const char* text = std::getenv(name);
  if (text != nullptr && *text != '\0') value = text;
}

}  // namespace

void add_connection(CLI::App& command, ConnectionOptions& connection) {
  command
      .add_option("--url", connection.url, "The server, http://[NAME:PASSWORD@]HOST[:PORT] (Env:DIVAN_URL)")
      ->capture_default_str();
  // Not with CLI11's envname(), for which the variable would count as a given option. After the default was
  // captured, so that --help shows no password.
  read_environment("DIVAN_URL", connection.url);
  read_environment("DIVAN_USER", connection.default_user);
  command.add_option(
      "--user", connection.user,
      "NAME:PASSWORD; otherwise that of the URL, of Env:DIVAN_USER, or of the administrator in "
      "the data directory");
  command.add_option("--data-dir", connection.data_dir, "Data directory of a server on this machine")
      ->type_name("DIR")
      ->capture_default_str();
}

void add_query(CLI::App& command, QueryOptions& options) {
  add_connection(command, options.connection);
  command.add_flag("--json", options.json, "Print the server's response as JSON");
}

std::pair<std::string, std::string> split_pair(const std::string& text, char separator,
                                               std::string_view expected) {
  const auto at = text.find(separator);
  if (at == std::string::npos || at == 0 || at + 1 == text.size())
    throw bad_request(fmt::format("`{}` is not {}.", text, expected));
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace divan::app
