#include "divan/kv/fdb/client.h"

#include <fmt/format.h>

#include <memory>

#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/base/mutex.h"
#include "divan/kv/fdb/tls.h"

namespace divan::kv::fdb {
namespace {

// Of the oldest library. Later ones have it, too, and all that are used beside one another must have it: a
// newer one could not speak through an older one, to a cluster that is not upgraded yet.
constexpr int kApi = 630;

Mutex mutex{MutexRank::fdb_client, "fdb::Client"};  // protects client
std::unique_ptr<Client> client;                     // of this process

}  // namespace

void Client::stop() {
  std::lock_guard lock(mutex);
  client.reset();
}

const Client& Client::of_this_process(const ClientOptions& options) {
  std::lock_guard lock(mutex);
  if (!client) {
    check_tls_files(options);
    client.reset(new Client(options));
  }
  if (!(client->options_ == options))
    throw internal_error("FoundationDB's client runs in this process already, with other options.");
  return *client;
}

Client::Client(const ClientOptions& options) : options_(options), api_(options.library) {
  if (const int newest = api_.get_max_api_version(); newest < kApi) {
    throw internal_error(
        fmt::format("FoundationDB's client library {} is too old: it knows API version {}, Divan needs {} "
                    "(6.3) or later.",
                    version(), newest, kApi));
  }
  if (const FdbError code = api_.select_api_version(kApi, kApi); code != 0) {
    throw internal_error(fmt::format("FoundationDB's client library {} refuses API version {}: {}", version(),
                                     kApi, api_.describe(code)));
  }
  set_option(NetworkOption::trace_enable, options.trace_directory);
  set_option(NetworkOption::tls_certificate_path, options.tls_certificate_file);
  set_option(NetworkOption::tls_password, options.tls_password);
  set_option(NetworkOption::tls_key_path, options.tls_key_file);
  set_option(NetworkOption::tls_ca_path, options.tls_ca_file);
  set_option(NetworkOption::tls_verify_peers, options.tls_verify_peers);
  if (const FdbError code = api_.setup_network(); code != 0) {
    throw internal_error(
        fmt::format("FoundationDB's client cannot be started: {}. Are its environment variables right, "
                    "FDB_NETWORK_OPTION_...?",
                    api_.describe(code)));
  }
}

void Client::run() const {
  std::call_once(started_, [this] {
    network_ = std::thread([this] {
      if (const FdbError code = api_.run_network(); code != 0)
        log::error("FoundationDB's client has stopped: {}", api_.describe(code));
    });
  });
}

Client::~Client() {
  if (!network_.joinable()) return;
  api_.stop_network();
  network_.join();
}

std::string Client::version() const {
  // "7.1.67,the commit,the protocol"
  const std::string all = api_.get_client_version();
  return all.substr(0, all.find(','));
}

void Client::set_option(NetworkOption option, const std::string& value) const {
  if (value.empty()) return;
  const FdbError code =
      api_.network_set_option(static_cast<int>(option), reinterpret_cast<const std::uint8_t*>(value.data()),
                              static_cast<int>(value.size()));
  if (code == 0) return;
  throw internal_error(fmt::format("FoundationDB's client does not take the setting `{}`: {}",
                                   option == NetworkOption::tls_password ? "(a password)" : value,
                                   api_.describe(code)));
}

}  // namespace divan::kv::fdb
