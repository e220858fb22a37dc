// `divan backup` and `divan restore`.
#pragma once

#include <vector>

#include "divan/app/connection.h"

namespace divan::app {

struct BackupOptions {
  ConnectionOptions connection;
  std::string file;   // "-": standard output
  std::string store;  // read without a server; empty: the store of the server that `connection` names
  bool quiet = false;
};

/// Takes a backup of a running server or of a store. The file appears when it is complete, checked and
/// synced. Throws divan::Error, or kv::Error if the store fails.
void backup(const BackupOptions& options);

struct RestoreOptions {
  ConnectionOptions connection;
  std::string file;
  bool quiet = false;
  std::string new_data_dir;  // to be created from the backup, without a server; empty: restore into a server
  std::string store;         // an empty shared store, to be filled without a server
  std::vector<std::string> databases;  // of the backup; empty: all
  std::string as;                      // a new name for the only database in `databases`; empty: unchanged
};

/// Throws divan::Error if the backup is damaged or cannot be restored, and kv::Error if the store fails; in
/// both cases nothing is restored, unless the message says that the result is unknown.
void restore(const RestoreOptions& options);

}  // namespace divan::app
