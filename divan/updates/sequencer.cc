#include "divan/updates/sequencer.h"

#include <algorithm>

#include "divan/base/check.h"
#include "divan/updates/feed.h"

namespace divan::updates {
namespace {

constexpr std::size_t kMarksPerTransaction = 500;
// For marks without a notification: of a node that died, or of a commit with an unknown result.
constexpr Duration kOrphanInterval = std::chrono::minutes(1);

}  // namespace

Duration pause_after(std::size_t marks, Duration took, const SequencerOptions& options) {
  const Duration longest = options.event_delay + options.write_delay;
  const auto share = static_cast<Duration::rep>(std::min(marks, kFullBatch));
  return std::min(longest, std::max(longest * share / static_cast<Duration::rep>(kFullBatch),
                                    marks > 0 ? took * kPausePerWork : Duration(0)));
}

Sequencer::Sequencer(kv::Database& store, docs::Catalog& catalog, const Clock& clock,
                     SequencerOptions options, std::string node)
    : store_(store),
      catalog_(catalog),
      clock_(clock),
      node_(std::move(node)),
      recording_(options.recording),
      options_(options),
      loop_(clock, "updates", [this] { return step_if_due(); }) {
  catalog_.on_change([this](kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind,
                            std::string_view id) { record(tx, database, kind, id); });
  if (!node_.empty()) follower_.emplace(store_, catalog_.bus(), clock_, node_);
}

void Sequencer::start() {
  if (follower_) follower_->start();
  loop_.start();
}

void Sequencer::configure(const SequencerOptions& options) {
  {
    std::lock_guard lock(mutex_);
    recording_ = options.recording;
    options_ = options;
    next_step_ = MonotonicTime::min();
  }
  loop_.notify();
}

void Sequencer::record(kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind,
                       std::string_view id) {
  const Recorded recorded = record_change(tx, database, kind, id, {recording_, node_});
  if (recorded.mark) tx.after_commit([this] { notify(); });
  if (recorded.rows == 0) return;
  tx.after_commit([this, rows = recorded.rows] {
    rows_ += rows;
    publish_feed();
  });
}

void Sequencer::publish_feed() {
  catalog_.bus().publish(feed_channel(), [] { return events::Event{"feed", {}, {}, {}}; });
}

void Sequencer::notify() {
  if (unseen_.fetch_add(1) == 0) loop_.notify();
}

// After a notification during the pause, the next step is made at the end of the pause.
MonotonicTime Sequencer::step_if_due() {
  const MonotonicTime began = clock_.now();
  {
    std::lock_guard lock(mutex_);
    if (began < next_step_) return next_step_;
  }
  std::size_t marks = 0;
  const bool done = failures_.run([&] { marks = step(); });
  const MonotonicTime ended = clock_.now();
  std::lock_guard lock(mutex_);
  next_step_ = ended + (done ? pause_after(marks, ended - began, options_) : kRetryDelay);
  return done ? next_step_ + kOrphanInterval : next_step_;
}

// One transaction, whose retries are counted.
template <class Fn>
auto Sequencer::transact(Fn&& fn) {
  std::uint64_t tries = 0;
  return store_.run([&](kv::Transaction& tx) {
    ++transactions_;
    if (tries++ > 0) ++conflicts_;
    return fn(tx);
  });
}

std::size_t Sequencer::step() {
  unseen_ = 0;
  for (std::size_t all = 0;;) {
    const Sequenced batch = transact([this](kv::Transaction& tx) {
      // The read version is taken before recording_ is read, so marks that were written after recording was
      // switched on again are not dropped.
      prefetch_marks(tx, kMarksPerTransaction);
      tx.read_version();
      const auto found = sequence_marks(tx, kMarksPerTransaction, {recording_, node_});
      pending_ = found.marks;
      return found;
    });
    DIVAN_CHECK(batch.marks <= kMarksPerTransaction, "{} marks in a transaction", batch.marks);
    DIVAN_CHECK(batch.rows <= batch.marks, "{} rows of the feed for {} marks", batch.rows, batch.marks);
    pending_ = 0;
    rows_ += batch.rows;
    all += batch.marks;
    if (batch.rows > 0) publish_feed();
    if (batch.marks < kMarksPerTransaction) return all;
  }
}

SequencerStats Sequencer::stats() const {
  SequencerStats stats;
  stats.rows = rows_;
  stats.transactions = transactions_;
  stats.conflicts = conflicts_;
  stats.failures = failures_.total();
  stats.unseen = unseen_;
  stats.pending = pending_;
  if (follower_) {
    stats.transactions += follower_->transactions();
    stats.failures += follower_->failures();
  }
  return stats;
}

}  // namespace divan::updates
