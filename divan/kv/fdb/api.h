// FoundationDB's C client, as far as this engine uses it
// (https://apple.github.io/foundationdb/api-c.html): a stable interface that is found in a shared library
// when the program runs, so that neither building Divan nor running it on another store needs FoundationDB.
#pragma once

#include <cstdint>
#include <string>

namespace divan::kv::fdb {

// The client's opaque objects.
struct FdbFuture;
struct FdbDatabaseHandle;
struct FdbTransactionHandle;

using FdbError = int;  // 0: none
using FdbBool = int;

// The library declares it with an alignment of four bytes and the same layout, but its rows may be at any
// address.
#pragma pack(push, 1)
/// A row of a range, in the client's memory.
struct FdbKeyValue {
  const std::uint8_t* key;
  int key_length;
  const std::uint8_t* value;
  int value_length;
};
#pragma pack(pop)
static_assert(sizeof(FdbKeyValue) == 24);

// Numbers of the interface ("fdb.options" in FoundationDB's documentation of its options).
enum class NetworkOption {
  trace_enable = 30,
  tls_certificate_path = 43,
  tls_key_path = 46,
  tls_verify_peers = 47,
  tls_ca_path = 53,
  tls_password = 54,
};
enum class DatabaseOption { max_watches = 20, size_limit = 503 };
enum class TransactionOption { access_system_keys = 301, lock_aware = 700, auto_throttle_tag = 801 };
enum class StreamingMode { want_all = -2, iterator = -1, serial = 4 };
enum class Mutation {
  add = 2,
  max = 12,
  min = 13,
  set_versionstamped_key = 14,
  set_versionstamped_value = 15,
  byte_min = 16,
  byte_max = 17,
  compare_and_clear = 20,
};
enum class ConflictRange { read = 0, write = 1 };
enum class ErrorPredicate { retryable = 50000, maybe_committed = 50001 };

/// The client's functions. Filled in once, then unchanged, hence thread-safe.
struct Api {
  /// Has no functions yet. For tests, which assign their own.
  Api() = default;
  /// Opens the library and finds its functions. `library` is a path or a file name; empty: the name under
  /// which FoundationDB's packages install it. Throws divan::Error 500 that says what to install.
  explicit Api(const std::string& library);

  using Bytes = const std::uint8_t*;
  using Callback = void (*)(FdbFuture*, void*);

  FdbError (*select_api_version)(int runtime_version, int header_version);
  int (*get_max_api_version)();
  const char* (*get_client_version)();
  const char* (*get_error)(FdbError);
  FdbBool (*error_predicate)(int predicate, FdbError);

  FdbError (*network_set_option)(int option, Bytes value, int size);
  FdbError (*setup_network)();
  FdbError (*run_network)();
  FdbError (*stop_network)();

  void (*future_cancel)(FdbFuture*);
  void (*future_destroy)(FdbFuture*);
  FdbBool (*future_is_ready)(FdbFuture*);
  FdbError (*future_set_callback)(FdbFuture*, Callback, void*);
  FdbError (*future_get_error)(FdbFuture*);
  FdbError (*future_get_int64)(FdbFuture*, std::int64_t*);
  FdbError (*future_get_key)(FdbFuture*, Bytes* key, int* size);
  FdbError (*future_get_value)(FdbFuture*, FdbBool* present, Bytes* value, int* size);
  FdbError (*future_get_keyvalue_array)(FdbFuture*, const FdbKeyValue** rows, int* count, FdbBool* more);

  FdbError (*create_database)(const char* cluster_file, FdbDatabaseHandle**);
  void (*database_destroy)(FdbDatabaseHandle*);
  FdbError (*database_set_option)(FdbDatabaseHandle*, int option, Bytes value, int size);
  FdbError (*database_create_transaction)(FdbDatabaseHandle*, FdbTransactionHandle**);
  /// Null in libraries before 7.0.
  FdbFuture* (*database_get_server_protocol)(FdbDatabaseHandle*, std::uint64_t expected);

  void (*transaction_destroy)(FdbTransactionHandle*);
  FdbError (*transaction_set_option)(FdbTransactionHandle*, int option, Bytes value, int size);
  void (*transaction_set_read_version)(FdbTransactionHandle*, std::int64_t);
  FdbFuture* (*transaction_get_read_version)(FdbTransactionHandle*);
  FdbFuture* (*transaction_get)(FdbTransactionHandle*, Bytes key, int size, FdbBool snapshot);
  FdbFuture* (*transaction_get_range)(FdbTransactionHandle*, Bytes begin, int begin_size,
                                      FdbBool begin_or_equal, int begin_offset, Bytes end, int end_size,
                                      FdbBool end_or_equal, int end_offset, int limit, int target_bytes,
                                      int mode, int iteration, FdbBool snapshot, FdbBool reverse);
  void (*transaction_set)(FdbTransactionHandle*, Bytes key, int key_size, Bytes value, int value_size);
  void (*transaction_clear)(FdbTransactionHandle*, Bytes key, int size);
  void (*transaction_clear_range)(FdbTransactionHandle*, Bytes begin, int begin_size, Bytes end,
                                  int end_size);
  void (*transaction_atomic_op)(FdbTransactionHandle*, Bytes key, int key_size, Bytes operand,
                                int operand_size, int mutation);
  FdbFuture* (*transaction_get_estimated_range_size_bytes)(FdbTransactionHandle*, Bytes begin, int begin_size,
                                                           Bytes end, int end_size);
  FdbFuture* (*transaction_watch)(FdbTransactionHandle*, Bytes key, int size);
  FdbFuture* (*transaction_commit)(FdbTransactionHandle*);
  FdbError (*transaction_get_committed_version)(FdbTransactionHandle*, std::int64_t*);
  FdbFuture* (*transaction_get_versionstamp)(FdbTransactionHandle*);
  FdbFuture* (*transaction_on_error)(FdbTransactionHandle*, FdbError);
  void (*transaction_reset)(FdbTransactionHandle*);
  FdbError (*transaction_add_conflict_range)(FdbTransactionHandle*, Bytes begin, int begin_size, Bytes end,
                                             int end_size, int type);

  bool is(ErrorPredicate predicate, FdbError code) const {
    return error_predicate(static_cast<int>(predicate), code) != 0;
  }
  /// "The text of the error (its number)".
  std::string describe(FdbError code) const;
};

}  // namespace divan::kv::fdb
