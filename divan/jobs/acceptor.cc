#include "divan/jobs/acceptor.h"

#include "divan/jobs/rows.h"

namespace divan::jobs {
namespace {

// Without a watch (the store has too many), and as a net below the watches, waiters look again this often.
constexpr std::chrono::seconds kFallbackPoll(5);

}  // namespace

Accepted JobWait::try_accept(Queue& queue, kv::Database& store, std::span<const std::string> types,
                             const AcceptOptions& options, std::shared_ptr<JobWait>& wait) {
  std::vector<std::shared_ptr<kv::Watch>> watches;
  Accepted accepted = store.run([&](kv::Transaction& tx) {
    watches.clear();
    auto found = jobs::accept(queue, tx, types, options);
    if (!found.jobs.empty()) return found;
    try {
      for (const auto& type : types) {
        // Of a type that is full it does not help that jobs are added, but that one ends, or the limit.
        if (found.full.contains(type)) {
          watches.push_back(tx.watch(count_key(type, State::running)));
          watches.push_back(tx.watch(type_key(type)));
        } else {
          watches.push_back(tx.watch(wake_key(type)));
        }
      }
    } catch (const kv::Error& error) {
      if (error.code() != kv::ErrorCode::too_many_watches) throw;
    }
    return found;
  });
  wait = std::make_shared<JobWait>();
  for (const auto& watch : watches) {
    watch->on_end([weak = std::weak_ptr(wait)] {
      if (const auto waiting = weak.lock()) waiting->wake();
    });
  }
  wait->watches_ = std::move(watches);
  return accepted;
}

void JobWait::on_wake(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (!woken_) {
      callback_ = std::move(callback);
      return;
    }
  }
  callback();
}

void JobWait::wake() {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex_);
    if (woken_) return;
    woken_ = true;
    callback = std::move(callback_);
  }
  if (callback) callback();
}

std::vector<AcceptedJob> Acceptor::accept(std::span<const std::string> types, const AcceptOptions& options,
                                          MonotonicTime deadline) {
  for (;;) {
    {
      std::lock_guard lock(state_->mutex);
      if (state_->interrupted) return {};
    }
    std::shared_ptr<JobWait> wait;
    auto accepted = JobWait::try_accept(queue_, store_, types, options, wait);
    if (!accepted.jobs.empty()) return std::move(accepted.jobs);

    MonotonicTime until = std::min(deadline, clock_.now() + kFallbackPoll);
    if (accepted.next_due_at) {
      // Cut before it becomes nanoseconds: a job may be due in millions of years.
      constexpr std::int64_t kLongest = std::chrono::milliseconds(kFallbackPoll).count();
      const auto pause = std::chrono::milliseconds(
          std::clamp<std::int64_t>(*accepted.next_due_at - clock_.wall_ms(), 1, kLongest));
      until = std::min<MonotonicTime>(until, clock_.now() + pause);
    }
    // The callback may still run when this call, or this object, has ended: what it touches is shared.
    const auto woken = std::make_shared<bool>(false);
    wait->on_wake([state = state_, woken] {
      std::lock_guard lock(state->mutex);
      *woken = true;
      state->changed.notify_all();
    });
    std::unique_lock lock(state_->mutex);
    clock_.wait_until(lock, state_->changed, until, [&] { return *woken || state_->interrupted; });
    if (!*woken && (state_->interrupted || clock_.now() >= deadline)) return {};
  }
}

void Acceptor::interrupt() {
  std::lock_guard lock(state_->mutex);
  state_->interrupted = true;
  state_->changed.notify_all();
}

}  // namespace divan::jobs
