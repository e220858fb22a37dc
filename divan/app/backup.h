// `divan backup` and `divan restore`.
#pragma once

#include <vector>

#include "divan/app/connection.h"

namespace divan::app {

struct BackupOptions {
  ConnectionOptions connection;
  std::string file;   // "-": standard output
  std::string store;  // read without a server; empty: of the one that the connection names
  bool quiet = false;
};

/// Takes a backup of a running server, or of a store. The file appears when it is complete, checked and on
/// the disk.
void backup(const BackupOptions& options);

struct RestoreOptions {
  ConnectionOptions connection;
  std::string file;
  bool quiet = false;
  std::string new_data_dir;            // made from the backup, without a server; empty: into a running one
  std::string store;                   // an empty shared store, filled without a server
  std::vector<std::string> databases;  // of the backup; empty: all
  std::string as;                      // the name of the one database in the server; empty: its own
};

/// Throws Error if the backup is damaged or cannot be restored; then nothing of it is there.
void restore(const RestoreOptions& options);

}  // namespace divan::app
