// A running server: all its parts, created in order and destroyed in reverse.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "divan/api/context.h"
#include "divan/base/config.h"

namespace divan::app {

/// The kinds of background work, which can be divided among the processes of a store: maintenance of jobs
/// (jobs/maintenance.h), requesting builds of indexes, building them, automatic purges
/// (purge/auto_purge.h), automatic compactions (compaction/compactor.h), replications
/// (replicator/replicator.h), triggers (index/triggers), and deliveries of jobs (deliver/deliverer.h).
inline const std::vector<std::string> kBackgroundKinds{"jobs",       "ken",        "views",    "purge",
                                                       "compaction", "replicator", "triggers", "deliver"};

struct ServerSettings {
  std::string data_dir = "data";                           // with a shared store: only this node's own data
  std::vector<std::string> background = kBackgroundKinds;  // the kinds that this process runs
  std::string admin;  // "name:password"; empty: from the settings, else from the data directory
  // False: background work only, which requires a shared store. The process may listen all the same, for
  // monitoring with `/_up` and `/_node`.
  bool serves = true;
  bool listens = true;
};

/// Serves from construction to stop(). The constructor throws divan::Error, with the cause (the data
/// directory, a setting or the address), or kv::Error if the store fails.
class Server {
 public:
  /// `config` must be complete, and outlive the server.
  /// `control`: restart and reload_settings, which may be empty if the server does not listen.
  Server(Config& config, const ServerSettings& settings, const api::NodeControl& control = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// "http://127.0.0.1:5984"; empty if it does not listen.
  std::string url() const;
  /// "https://127.0.0.1:6984"; empty if it does not listen with TLS.
  std::string tls_url() const;
  /// The file to which this start has written a new password; empty if there already was one.
  const std::string& new_admin_file() const;

  /// Returns true if none of the threads that serve connections is blocked for this long.
  bool responds(std::chrono::milliseconds timeout) const;

  /// Accepts no more requests, waits for running ones, releases running jobs and closes the store.
  /// Idempotent.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace divan::app
