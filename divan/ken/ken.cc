#include "divan/ken/ken.h"

#include "divan/base/log.h"
#include "divan/docs/reader.h"

namespace divan::ken {
namespace {

// A database that could not be looked at waits this long.
constexpr Duration kRetryPause = std::chrono::seconds(5);

// Of the database, and of earlier ones of its name.
std::vector<std::string> jobs_of(jobs::Queue& queue, kv::Transaction& tx, std::string_view type,
                                 std::string_view database) {
  std::vector<std::string> ids;
  for (const auto& job : queue.list(tx, type, std::nullopt, "", SIZE_MAX)) {
    if (index::BuildRequest::parse(queue.data(tx, job)).database == database) ids.push_back(job.id);
  }
  return ids;
}

}  // namespace

Ken::Ken(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, const index::Kinds& kinds,
         const Clock& clock, KenOptions options)
    : store_(store), catalog_(catalog), queue_(queue), kinds_(kinds), clock_(clock), options_(options) {}

Ken::~Ken() {
  listener_.reset();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Ken::start() {
  listener_.emplace(catalog_.bus(), clock_,
                    events::ListenerCallbacks{.event = [this](const events::Event& event) { handle(event); },
                                              .lagged = [this](std::uint64_t) { add_all(); }});
  listener_->listen({.all = true});
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "ken");
}

void Ken::handle(const events::Event& event) {
  switch (events::database_event_of(event.kind).value_or(events::DatabaseEvent::local_updated)) {
    case events::DatabaseEvent::updated:
    case events::DatabaseEvent::deleted:
    case events::DatabaseEvent::ddoc_updated: add(event.database); break;
    default: break;
  }
}

void Ken::add(const std::string& database) {
  {
    std::lock_guard lock(mutex_);
    if (!waiting_.insert(database).second) return;
  }
  changed_.notify_all();
}

void Ken::add_all() {
  for (const auto& name : store_.run([&](kv::Transaction& tx) { return catalog_.list(tx); })) add(name);
}

void Ken::run() {
  bool looked_at_all = false;
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const MonotonicTime began = clock_.now();
    // Whatever changes from here on waits again: no change falls between the look and the job.
    const std::set<std::string> batch = std::exchange(waiting_, {});
    lock.unlock();
    MonotonicTime next = began + options_.gather;
    std::vector<std::string> again;
    try {
      if (!looked_at_all) add_all();
      looked_at_all = true;
    } catch (const Error& error) {
      log::error("Ken could not list the databases: {}", error.what());
      next = began + kRetryPause;
    }
    for (const auto& database : batch) {
      try {
        update(database);
      } catch (const Error& error) {
        log::error("Ken could not look at database {}: {}", database, error.what());
        again.push_back(database);
        next = began + kRetryPause;
      }
    }
    lock.lock();
    waiting_.insert(again.begin(), again.end());
    clock_.wait_until(lock, changed_, next, [this] { return stopping_; });
    if (looked_at_all) {
      clock_.wait_until(lock, changed_, MonotonicTime::max(),
                        [this] { return stopping_ || !waiting_.empty(); });
    }
  }
}

void Ken::update(const std::string& name) {
  store_.run([&](kv::Transaction& tx) {
    const auto database = catalog_.find(tx, name);
    if (!database) {
      for (const auto& kind : kinds_) {
        for (const auto& id : jobs_of(queue_, tx, kind->name(), name)) queue_.remove(tx, kind->name(), id);
      }
      return;
    }
    const auto target = docs::last_sequence(tx, *database);
    for (const auto& index : index::indexes_of(tx, *database, kinds_)) {
      if (!index->automatic()) continue;
      const index::IndexKeys keys(*database, index->signature());
      if (index::read_sequence(tx, keys, kv::Isolation::snapshot) >= target) continue;
      index::request_build(queue_, tx, *database, *index);
    }
  });
}

}  // namespace divan::ken
