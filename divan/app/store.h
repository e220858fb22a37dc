// The choice of a store: in the data directory, or in a FoundationDB cluster.
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
inline constexpr const char* kStoreMeaning =
    "embedded, or fdb:CLUSTER_FILE; fdb: is FoundationDB's usual file";

/// Throws bad_request unless it is `embedded` or begins with `fdb:`.
void check_store_name(const std::string& store);

/// Whether other processes may work on the same store.
bool is_shared(const std::string& store);

/// A store that is open.
struct OpenStore {
  std::unique_ptr<kv::Database> database;
  // The same, whichever it is.
  const kv::embedded::EmbeddedDatabase* embedded = nullptr;
  const kv::fdb::FdbDatabase* fdb = nullptr;
};

/// Opens the store to serve it; its settings are in `config`, the embedded one is in `directory`. Throws
/// divan::Error with a reason of one line.
OpenStore open_store(const std::string& store, const std::string& directory, const Config& config,
                     const Clock& clock, Rng& rng);

/// Opens a shared store to read it: its format stays as it is. Throws as open_store() does.
std::unique_ptr<kv::Database> open_to_read(const std::string& store, const Config& config, const Clock& clock,
                                           Rng& rng);

/// A shared store in the making, from a backup. Until it is complete no server serves it; if it never is, it
/// is cleared away, now or by the next one. Not thread-safe.
class NewStore {
 public:
  /// Throws bad_request unless the store is empty.
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

/// The store's identity, made if it has none.
std::string server_uuid(kv::Database& store, Rng& rng);

/// What a command needs to open a store by itself: settings come from the environment alone.
struct CommandEnvironment {
  /// Throws bad_request naming a setting that is none.
  CommandEnvironment();

  const SystemClock clock;
  SystemRng rng;
  Config config;
};

}  // namespace divan::app
