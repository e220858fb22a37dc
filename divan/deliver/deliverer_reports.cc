// Reports to the job queue how deliveries have ended.
#include "divan/base/log.h"
#include "divan/deliver/deliverer.h"

namespace divan::deliver {
namespace {

// The most jobs in a transaction that reports, and of their results.
constexpr std::size_t kReportedAtOnce = 100;
constexpr std::size_t kReportedBytes = 2'000'000;
// Until a report is tried again.
constexpr Duration kRetryInterval = std::chrono::seconds(1);

}  // namespace

void Deliverer::schedule_report() {
  if (is_reporting_ || ended_.empty() || report_again_at_ != MonotonicTime::max()) return;
  is_reporting_ = pool_.submit([this] { report(); });
}

void Deliverer::report() {
  std::vector<Ended> some;
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      some.clear();
      std::size_t bytes = 0;
      std::size_t count = 0;
      while (count < std::min(ended_.size(), kReportedAtOnce) && bytes < kReportedBytes) {
        if (const auto& result = ended_[count].outcome.result) bytes += result->size();
        some.push_back(std::move(ended_[count++]));
      }
      ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
      if (some.empty()) {
        is_reporting_ = false;
        return;
      }
    }
    try {
      report_some(some);
    } catch (const std::exception& error) {
      log::error("Cannot report on deliveries; retrying in a second: {}", error.what());
      std::lock_guard lock(mutex_);
      is_reporting_ = false;
      // At the end of the server its worker's jobs return to the queue.
      if (stopping_) return;
      ended_.insert(ended_.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
      report_again_at_ = clock_.now() + kRetryInterval;
      loop_.notify();
      return;
    }
  }
}

void Deliverer::report_some(const std::vector<Ended>& ended) {
  std::map<std::string_view, std::vector<std::string_view>> ids;
  for (const auto& each : ended) ids[each.attempt.type].push_back(each.attempt.id);
  store_.run([&](kv::Transaction& tx) {
    for (const auto& [type, of_type] : ids) jobs::QueueCore::prefetch(tx, type, of_type);
    for (const auto& [attempt, outcome] : ended) {
      try {
        switch (outcome.kind) {
          case Outcome::Kind::finish:
            jobs::finish(queue_, tx, attempt, std::nullopt, outcome.progress, outcome.result);
            break;
          case Outcome::Kind::detach: jobs::detach(queue_, tx, attempt, outcome.progress); break;
          case Outcome::Kind::fail: jobs::fail(queue_, tx, attempt, outcome.error); break;
          case Outcome::Kind::fail_permanently:
            jobs::fail(queue_, tx, attempt, outcome.error, {.retry = false});
            break;
          case Outcome::Kind::release:
            jobs::release(queue_, tx, attempt,
                          outcome.pause > Duration::zero() ? std::optional(outcome.pause) : std::nullopt);
            break;
        }
      } catch (const jobs::LockLost&) {
        // The receiver has ended the job itself, it was removed, or its deadline has passed.
      } catch (const Error& error) {
        log::error("Cannot report on the delivery of job {}/{}: {}", attempt.type, attempt.id,
                   error.reason());
      }
    }
  });
}

}  // namespace divan::deliver
