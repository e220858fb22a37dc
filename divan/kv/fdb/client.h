// FoundationDB's client in this process: the library, the version of its interface, and the thread on which
// it talks to clusters. (It has more if its environment names libraries of other versions: callbacks may come
// on any.) It can be started once only, and must be stopped before the process ends.
#pragma once

#include <mutex>
#include <string>
#include <thread>

#include "divan/kv/fdb/api.h"
#include "divan/kv/fdb/client_options.h"

namespace divan::kv::fdb {

/// Thread-safe.
class Client {
 public:
  /// Starts the client at the first call. Throws divan::Error 500 that says what is missing or wrong, also if
  /// it runs already with other options.
  static const Client& of_this_process(const ClientOptions& options);
  /// Stops it, if it runs. For the end of main(): at exit() the library would destroy what its thread still
  /// uses. No database may be open any more, and none can be opened.
  static void stop();

  /// A client with these functions instead of a library's. For tests.
  explicit Client(const Api& api) : api_(api) {}
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Api& api() const { return api_; }
  const ClientOptions& options() const { return options_; }
  /// Starts the thread, unless it runs. Until then the client delivers nothing. A started thread must not be
  /// stopped before it was used.
  void run() const;
  /// "7.1.67".
  std::string version() const;

 private:
  explicit Client(const ClientOptions& options);
  void set_option(NetworkOption option, const std::string& value) const;

  const ClientOptions options_;
  const Api api_;
  mutable std::once_flag started_;
  mutable std::thread network_;
};

}  // namespace divan::kv::fdb
