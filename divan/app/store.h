// Selects the store: in the data directory, or in a FoundationDB cluster.
#pragma once

#include <memory>
#include <string>

#include "divan/base/clock.h"
#include "divan/base/config.h"
#include "divan/base/rng.h"
#include "divan/kv/store.h"

namespace divan::kv::embedded {
class EmbeddedDatabase;
}
namespace divan::kv::fdb {
class FdbDatabase;
}

namespace divan::app {

inline constexpr const char* kEmbedded = "embedded";
inline constexpr const char* kStoreDescription =
    "embedded, or fdb:CLUSTER_FILE; fdb: is FoundationDB's default file";

/// Throws bad_request unless `store` is `embedded` or begins with `fdb:`.
void check_store_name(const std::string& store);

/// Returns true if several processes can share the store.
bool is_shared(const std::string& store);

/// An open store.
struct OpenStore {
  std::unique_ptr<kv::Database> database;
  // `database` as the type of its engine; the other one is null.
  const kv::embedded::EmbeddedDatabase* embedded = nullptr;
  const kv::fdb::FdbDatabase* fdb = nullptr;
};

/// Opens the store for serving. Its settings are in `config`; the embedded store is in `directory`. Throws
/// divan::Error, with a reason of one line, if it cannot be opened, and kv::Error if a cluster fails.
OpenStore open_store(const std::string& store, const std::string& directory, const Config& config,
                     const Clock& clock, Rng& rng);

/// Opens a shared store for reading; does not upgrade its format. Throws like open_store().
std::unique_ptr<kv::Database> open_to_read(const std::string& store, const Config& config, const Clock& clock,
                                           Rng& rng);

/// A shared store that is being created from a backup. No server serves it until complete() was called;
/// otherwise it is cleared by the destructor or by the next NewStore. Not thread-safe.
class NewStore {
 public:
  /// Throws bad_request unless the store is shared and empty; otherwise like open_store().
  NewStore(const std::string& store, const Config& config, const Clock& clock, Rng& rng);
  ~NewStore();
  NewStore(const NewStore&) = delete;
  NewStore& operator=(const NewStore&) = delete;

  kv::Database& database();
  void complete();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Returns the store's identity; generates it if there is none.
std::string server_uuid(kv::Database& store, Rng& rng);

inline constexpr std::size_t kSessionSecretBytes = 32;

/// The secret of the session cookies of all servers of the store (api/session_cookies.h), created by the
/// first one.
std::string session_secret(kv::Database& store, Rng& rng);

}  // namespace divan::app
