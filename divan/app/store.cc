#include "divan/app/store.h"

#include <fmt/format.h>

#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/kv/embedded/engine.h"
#include "divan/kv/fdb/engine.h"
#include "divan/kv/tuple_packer.h"

namespace divan::app {
namespace {

constexpr std::string_view kFdb = "fdb:";

kv::embedded::Options embedded_options(const Config& config, const std::string& directory) {
  kv::embedded::Options options;
  options.directory = directory;
  options.durable = config.get("divan", "durability", "full") != "relaxed";
  options.cache_bytes =
      static_cast<std::size_t>(config.get_int("divan", "store_cache_bytes", 128 << 20, 0, INT64_MAX));
  return options;
}

kv::fdb::Options fdb_options(const Config& config, const std::string& cluster_file) {
  const auto text = [&](const char* key) { return config.get("fdb", key, ""); };
  const auto timeout = [&](const char* key) {
    return std::chrono::milliseconds(config.get_int("fdb", key, 10'000, 1, INT64_MAX));
  };
  kv::fdb::Options options;
  options.cluster_file = cluster_file;
  options.name = config.get("fdb", "name", "divan");
  options.tag = text("tag");
  options.start_timeout = timeout("start_timeout");
  options.answer_timeout = timeout("answer_timeout");
  options.client = {.library = text("library"),
                    .trace_directory = text("trace_directory"),
                    .tls_certificate_file = text("tls_certificate_file"),
                    .tls_key_file = text("tls_key_file"),
                    .tls_password = text("tls_password"),
                    .tls_ca_file = text("tls_ca_file"),
                    .tls_verify_peers = text("tls_verify_peers")};
  return options;
}

}  // namespace

void check_store_name(const std::string& store) {
  if (store == kEmbedded || store.starts_with(kFdb)) return;
  throw bad_request(fmt::format("Invalid --store {}; expected {}.", store, kStoreDescription));
}

bool is_shared(const std::string& store) { return store.starts_with(kFdb); }

OpenStore open_store(const std::string& store, const std::string& directory, const Config& config,
                     const Clock& clock, Rng& rng) {
  check_store_name(store);
  if (is_shared(store)) {
    const auto options = fdb_options(config, store.substr(kFdb.size()));
    auto database = std::make_unique<kv::fdb::FdbDatabase>(options, clock, rng);
    const auto* fdb = database.get();
    return {.database = std::move(database), .fdb = fdb};
  }
  auto database =
      std::make_unique<kv::embedded::EmbeddedDatabase>(embedded_options(config, directory), clock, rng);
  const auto* embedded = database.get();
  return {std::move(database), embedded};
}

std::unique_ptr<kv::Database> open_to_read(const std::string& store, const Config& config, const Clock& clock,
                                           Rng& rng) {
  auto options = fdb_options(config, store.substr(kFdb.size()));
  options.raises_format = false;
  return std::make_unique<kv::fdb::FdbDatabase>(options, clock, rng);
}

struct NewStore::Parts {
  const Clock& clock;
  kv::fdb::Options options;
  std::unique_ptr<kv::fdb::FdbDatabase> database;
  bool is_complete = false;
};

NewStore::NewStore(const std::string& store, const Config& config, const Clock& clock, Rng& rng) {
  check_store_name(store);
  if (!is_shared(store))
    throw bad_request("The embedded store is created in a data directory; use --data-dir.");
  parts_ = std::make_unique<Parts>(
      Parts{.clock = clock, .options = fdb_options(config, store.substr(kFdb.size())), .database = nullptr});
  parts_->options.unfinished = true;
  parts_->database = std::make_unique<kv::fdb::FdbDatabase>(parts_->options, clock, rng);
}

NewStore::~NewStore() {
  if (parts_->is_complete) return;
  parts_->database.reset();
  try {
    kv::fdb::erase_store(parts_->options, parts_->clock);
  } catch (const std::exception& error) {
    log::warning("Cannot clear the unfinished restore: {}", error.what());
  }
}

kv::Database& NewStore::database() { return *parts_->database; }

void NewStore::complete() {
  parts_->database->finish();
  parts_->is_complete = true;
}

namespace {

// The row of this name, which the first server creates.
std::string shared_row(kv::Database& store, std::string_view name,
                       const std::function<std::string()>& create) {
  return store.run([&](kv::Transaction& tx) {
    std::string key;
    kv::tuple::Packer(key).string(name);
    const auto known = tx.get(key);
    if (known) return *known;
    std::string fresh = create();
    tx.set(key, fresh);
    return fresh;
  });
}

}  // namespace

std::string server_uuid(kv::Database& store, Rng& rng) {
  return shared_row(store, "server_uuid", [&] { return rng.uuid(); });
}

std::string session_secret(kv::Database& store, Rng& rng) {
  return shared_row(store, "session_secret", [&] { return rng.bytes(kSessionSecretBytes); });
}

}  // namespace divan::app
