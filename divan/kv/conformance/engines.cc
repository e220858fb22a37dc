#include "divan/kv/conformance/engines.h"

#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/fdb/temporary_store.h"
#include "divan/kv/reference/reference.h"

namespace divan::kv::conformance {
namespace {

class EmbeddedStore final : public TestStore {
 public:
  EmbeddedStore(const Clock& clock, std::size_t max_watches)
      : database_({.directory = directory_.path() + "/store",
                   .durable = false,
                   .cache_bytes = 8 << 20,
                   .max_watches = max_watches,
                   .least_passed = 1},
                  clock, rng_) {}
  Database& database() override { return database_; }

 private:
  embedded::TemporaryDirectory directory_;
  SystemRng rng_;
  embedded::EmbeddedDatabase database_;
};

class ReferenceStore final : public TestStore {
 public:
  ReferenceStore(const Clock& clock, std::size_t max_watches)
      : database_(clock, rng_, {.version_step = 7, .max_watches = max_watches}) {}
  Database& database() override { return database_; }

 private:
  SystemRng rng_;
  reference::ReferenceDatabase database_;
};

class FdbStore final : public TestStore {
 public:
  FdbStore(const Clock& clock, std::size_t max_watches) : store_(clock, max_watches) {}
  Database& database() override { return *store_; }

 private:
  fdb::TemporaryStore store_;
};

template <class Store>
Engine engine(std::string name, bool time_is_injected = true) {
  return {std::move(name), time_is_injected, [](const Clock& clock, std::size_t max_watches) {
            return std::make_unique<Store>(clock, max_watches);
          }};
}

}  // namespace

const std::vector<Engine>& engines() {
  static const std::vector<Engine> all = [] {
    std::vector<Engine> there = {engine<EmbeddedStore>("embedded"), engine<ReferenceStore>("reference")};
    if (fdb::test_cluster_file()) there.push_back(engine<FdbStore>("fdb", false));
    return there;
  }();
  return all;
}

}  // namespace divan::kv::conformance
