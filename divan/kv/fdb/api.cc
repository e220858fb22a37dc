#include "divan/kv/fdb/api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "divan/base/error.h"

namespace divan::kv::fdb {
namespace {

constexpr const char* kUsualName = "libfdb_c.so";

class Library {
 public:
  explicit Library(const std::string& name) : name_(name.empty() ? kUsualName : name) {
    // Never closed: the client's threads and exit handlers run its code to the end of the process.
    handle_ = ::dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    throw internal_error(
        fmt::format("FoundationDB's client library is needed for this store and cannot be loaded ({}): "
                    "install the package foundationdb-clients of version 6.3 or later, or set "
                    "DIVAN_FDB_LIBRARY to the path of {}.",
                    ::dlerror(), kUsualName));
  }

  template <class Function>
  void find_if_there(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(::dlsym(handle_, symbol));
  }

  template <class Function>
  void find(Function*& function, const char* symbol) const {
    find_if_there(function, symbol);
    if (function != nullptr) return;
    throw internal_error(fmt::format(
        "{} has no function {}: it is no client library of FoundationDB 6.3 or later.", name_, symbol));
  }

 private:
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace

Api::Api(const std::string& path) {
  const Library library(path);
  library.find(select_api_version, "fdb_select_api_version_impl");
  library.find(get_max_api_version, "fdb_get_max_api_version");
  library.find(get_client_version, "fdb_get_client_version");
  library.find(get_error, "fdb_get_error");
  library.find(error_predicate, "fdb_error_predicate");
  library.find(network_set_option, "fdb_network_set_option");
  library.find(setup_network, "fdb_setup_network");
  library.find(run_network, "fdb_run_network");
  library.find(stop_network, "fdb_stop_network");
  library.find(future_cancel, "fdb_future_cancel");
  library.find(future_destroy, "fdb_future_destroy");
  library.find(future_is_ready, "fdb_future_is_ready");
  library.find(future_set_callback, "fdb_future_set_callback");
  library.find(future_get_error, "fdb_future_get_error");
  library.find(future_get_int64, "fdb_future_get_int64");
  library.find(future_get_key, "fdb_future_get_key");
  library.find(future_get_value, "fdb_future_get_value");
  library.find(future_get_keyvalue_array, "fdb_future_get_keyvalue_array");
  library.find(create_database, "fdb_create_database");
  library.find(database_destroy, "fdb_database_destroy");
  library.find(database_set_option, "fdb_database_set_option");
  library.find(database_create_transaction, "fdb_database_create_transaction");
  library.find_if_there(database_get_server_protocol, "fdb_database_get_server_protocol");
  library.find(transaction_destroy, "fdb_transaction_destroy");
  library.find(transaction_set_option, "fdb_transaction_set_option");
  library.find(transaction_set_read_version, "fdb_transaction_set_read_version");
  library.find(transaction_get_read_version, "fdb_transaction_get_read_version");
  library.find(transaction_get, "fdb_transaction_get");
  library.find(transaction_get_range, "fdb_transaction_get_range");
  library.find(transaction_set, "fdb_transaction_set");
  library.find(transaction_clear, "fdb_transaction_clear");
  library.find(transaction_clear_range, "fdb_transaction_clear_range");
  library.find(transaction_atomic_op, "fdb_transaction_atomic_op");
  library.find(transaction_get_estimated_range_size_bytes, "fdb_transaction_get_estimated_range_size_bytes");
  library.find(transaction_watch, "fdb_transaction_watch");
  library.find(transaction_commit, "fdb_transaction_commit");
  library.find(transaction_get_committed_version, "fdb_transaction_get_committed_version");
  library.find(transaction_get_versionstamp, "fdb_transaction_get_versionstamp");
  library.find(transaction_on_error, "fdb_transaction_on_error");
  library.find(transaction_reset, "fdb_transaction_reset");
  library.find(transaction_add_conflict_range, "fdb_transaction_add_conflict_range");
}

std::string Api::describe(FdbError code) const { return fmt::format("{} ({})", get_error(code), code); }

}  // namespace divan::kv::fdb
