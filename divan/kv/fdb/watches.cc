#include "divan/kv/fdb/watches.h"

#include <utility>

#include "divan/base/mutex.h"

namespace divan::kv::fdb {

// Outlives the store with the watches that are still held.
struct WatchEntry::Shared {
  explicit Shared(std::size_t the_limit) : limit(the_limit) {}

  const std::size_t limit;
  Mutex mutex{MutexRank::fdb_watches, "WatchEntry::Shared::mutex"};  // protects the members below
  ConditionVariable changed;
  std::unordered_set<std::shared_ptr<WatchEntry>> open;
  std::deque<std::shared_ptr<WatchEntry>> ready;
  bool closing = false;
};

void WatchEntry::on_ready(FdbFuture*, void* parameter) {
  const std::unique_ptr<std::shared_ptr<WatchEntry>> entry(
      static_cast<std::shared_ptr<WatchEntry>*>(parameter));
  Shared& shared = *(*entry)->shared_;
  std::lock_guard lock(shared.mutex);
  if (shared.closing) return;
  shared.ready.push_back(*entry);
  shared.changed.notify_all();
}

void WatchEntry::set() { learn(is_set_); }

// After an error the key has to be read again, too.
void WatchEntry::future_ready() { learn(is_ready_); }

void WatchEntry::learn(bool& what) {
  {
    std::lock_guard lock(mutex_);
    what = true;
    if (!is_set_ || !is_ready_) return;
  }
  end(&Watch::fire);
}

void WatchEntry::end(void (Watch::*how)()) {
  std::shared_ptr<Watch> watch;
  std::optional<Future> future;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(has_ended_, true)) return;
    // Reset, since a weak_ptr keeps the control block, whose deleter owns this entry.
    watch = std::exchange(watch_, {}).lock();
    future = std::exchange(future_, std::nullopt);
  }
  {
    std::lock_guard lock(shared_->mutex);
    shared_->open.erase(shared_from_this());
  }
  if (watch) ((*watch).*how)();
}

Watches::Watches(std::size_t limit)
    : shared_(std::make_shared<WatchEntry::Shared>(limit)), thread_([this] { run(); }) {}

Watches::~Watches() {
  std::unordered_set<std::shared_ptr<WatchEntry>> open;
  {
    std::lock_guard lock(shared_->mutex);
    shared_->closing = true;
    open = shared_->open;
    shared_->changed.notify_all();
  }
  for (const auto& entry : open) entry->cancel();
  thread_.join();
  shared_->ready.clear();  // which hold it in turn
}

Watches::Asked Watches::add(const Api& api, const std::function<Future()>& ask) {
  const std::shared_ptr<WatchEntry> entry(new WatchEntry(shared_));
  {
    std::lock_guard lock(shared_->mutex);
    if (shared_->open.size() >= shared_->limit) throw Error(ErrorCode::too_many_watches);
    shared_->open.insert(entry);
  }
  // A watch without owners is not waited for.
  std::shared_ptr<Watch> watch(new Watch, [entry](Watch* gone) {
    delete gone;
    entry->cancel();
  });
  Future future = ask();
  auto parameter = std::make_unique<std::shared_ptr<WatchEntry>>(entry);
  FdbFuture* const handle = future.get();
  {
    std::lock_guard lock(entry->mutex_);
    entry->watch_ = watch;
    entry->future_.emplace(std::move(future));
  }
  if (api.future_set_callback(handle, &WatchEntry::on_ready, parameter.get()) == 0) {
    static_cast<void>(parameter.release());  // on_ready() deletes it
  } else {
    // The client would never call back: the watch fires as soon as it is set, and its owner reads again.
    entry->future_ready();
  }
  return {std::move(watch), entry};
}

void Watches::run() {
  std::unique_lock lock(shared_->mutex);
  for (;;) {
    shared_->changed.wait(lock, [&] { return shared_->closing || !shared_->ready.empty(); });
    if (shared_->closing) return;
    const auto entry = std::move(shared_->ready.front());
    shared_->ready.pop_front();
    lock.unlock();
    entry->future_ready();
    lock.lock();
  }
}

}  // namespace divan::kv::fdb
