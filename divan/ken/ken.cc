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
    if (index::database_of_build(job.id) == database) ids.push_back(job.id);
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
                                              .lagged = [this](std::uint64_t) { look_at_all(); }});
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

void Ken::look_at_all() {
  {
    std::lock_guard lock(mutex_);
    all_at_ = clock_.now();
  }
  changed_.notify_all();
}

// Whether it came to that.
bool Ken::add_all() {
  try {
    for (const auto& name : store_.run([&](kv::Transaction& tx) { return catalog_.list(tx); })) add(name);
    return true;
  } catch (const std::exception& error) {
    log::error("Ken could not list the databases: {}", error.what());
    return false;
  }
}

bool Ken::try_update(const std::string& database) {
  try {
    update(database);
    return true;
  } catch (const std::exception& error) {
    log::error("Ken could not look at database {}: {}", database, error.what());
    return false;
  }
}

// What is to be done now, those included whose time to be tried again has come. Needs mutex_.
std::set<std::string> Ken::take_batch(MonotonicTime now) {
  // Whatever changes from here on waits again: no change falls between the look and the job.
  std::set<std::string> batch = std::exchange(waiting_, {});
  std::erase_if(again_at_, [&](const auto& entry) {
    if (entry.second <= now) batch.insert(entry.first);
    return entry.second <= now;
  });
  return batch;
}

// When there is something to be tried again. Needs mutex_.
MonotonicTime Ken::next_time() const {
  MonotonicTime next = all_at_;
  for (const auto& [database, time] : again_at_) next = std::min(next, time);
  return next;
}

void Ken::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const MonotonicTime began = clock_.now();
    const bool all = all_at_ <= began;
    if (all) all_at_ = MonotonicTime::max();
    const std::set<std::string> batch = take_batch(began);
    lock.unlock();
    const bool listed = !all || add_all();
    std::vector<std::string> failed;
    for (const auto& database : batch) {
      if (!try_update(database)) failed.push_back(database);
    }
    lock.lock();
    if (!listed) all_at_ = std::min(all_at_, clock_.now() + kRetryPause);
    for (const auto& database : failed) again_at_[database] = clock_.now() + kRetryPause;
    clock_.wait_until(lock, changed_, began + options_.gather, [this] { return stopping_; });
    while (!stopping_ && waiting_.empty() && next_time() > clock_.now()) {
      const MonotonicTime next = next_time();
      clock_.wait_until(lock, changed_, next,
                        [&] { return stopping_ || !waiting_.empty() || next_time() < next; });
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
      if (index::waits_after_failure(queue_, tx, *database, *index)) continue;
      index::request_build(queue_, tx, *database, *index);
    }
  });
}

}  // namespace divan::ken
