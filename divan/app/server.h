// A running server: all its parts, made in order and ended in reverse.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "divan/base/config.h"

namespace divan::app {

/// The kinds of background work, which the processes on a store may divide among them: the upkeep of jobs
/// (those of workers that ended, schedules, what is kept too long), asking for indexes to be built, and
/// building them.
inline const std::vector<std::string> kBackgroundKinds{"jobs", "ken", "views"};

struct ServerSettings {
  std::string data_dir = "data";  // with a shared store, of what is this node's alone
  std::vector<std::string> background = kBackgroundKinds;  // what this process does of it
  std::string admin;  // "name:password"; empty: from the settings, else from the data directory
  // False: background work only, which takes a shared store. It may listen all the same, for those who look
  // after it: `/_up` and `/_node`.
  bool serves = true;
  bool listens = true;
};

/// Serves from construction to stop(). Throws divan::Error naming what is wrong: the data directory, a
/// setting, the address.
class Server {
 public:
  /// `config` is complete and outlives the server.
  Server(Config& config, const ServerSettings& settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "http://127.0.0.1:5984"; empty if it does not listen.
  std::string url() const;
  /// Where a password was made and written down at this start; empty if there was one already.
  const std::string& new_admin_file() const;

  /// Takes no more requests, lets those under way end, hands running jobs back and closes the store.
  /// Idempotent.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// The file of the data directory that has the administrator's name and password, "name:password".
std::string admin_file(const std::string& data_dir);

/// Where a store is in a data directory as long as a backup is being restored into it.
std::string unfinished_restore(const std::string& data_dir);

/// Throws internal_error that says what to do if there is one.
void refuse_unfinished_restore(const std::string& data_dir);

/// The first line of a file, or nothing.
std::optional<std::string> read_line(const std::string& path);

}  // namespace divan::app
