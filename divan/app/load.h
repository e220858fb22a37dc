// `divan load`: loads documents from a file of JSON lines into a database of a running server.
#pragma once

#include "divan/app/connection.h"

namespace divan::app {

struct LoadOptions {
  ConnectionOptions connection;
  std::string database;
  std::string file = "-";    // "-": standard input
  std::size_t batch = 1000;  // documents per request
  std::size_t connections = 2;
  bool quiet = false;  // no progress bar
};

/// Creates the database if it is missing, and loads every line. Returns the exit status: 0 if all documents
/// were written.
int load(const LoadOptions& options);

}  // namespace divan::app
