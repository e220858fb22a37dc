#include "divan/updates/sequencer.h"

#include "divan/base/log.h"

namespace divan::updates {
namespace {

constexpr std::size_t kMarksPerTransaction = 500;
// Marks of other processes, and those that an error left.
constexpr Duration kPollInterval = std::chrono::seconds(5);

}  // namespace

Sequencer::Sequencer(kv::Database& store, docs::Catalog& catalog, const Clock& clock,
                     SequencerOptions options)
    : store_(store),
      catalog_(catalog),
      clock_(clock),
      recording_(options.recording),
      gather_(options.gather) {
  catalog_.on_change([this](kv::Transaction& tx, const docs::Database& database, events::DatabaseEvent kind) {
    if (!recording_) return;
    record_change(tx, database, kind);
    if (kind == events::DatabaseEvent::updated) {
      tx.after_commit([this] { wake(); });
    } else {
      tx.after_commit(
          [this] { catalog_.bus().publish(feed_channel(), [] { return events::Event{"feed"}; }); });
    }
  });
}

Sequencer::~Sequencer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Sequencer::start() {
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "updates");
}

void Sequencer::configure(const SequencerOptions& options) {
  {
    std::lock_guard lock(mutex_);
    recording_ = options.recording;
    gather_ = options.gather;
    configured_ = woken_ = true;
  }
  changed_.notify_all();
}

void Sequencer::wake() {
  {
    std::lock_guard lock(mutex_);
    if (woken_) return;
    woken_ = true;
  }
  changed_.notify_all();
}

void Sequencer::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    woken_ = configured_ = false;
    const MonotonicTime began = clock_.now();
    lock.unlock();
    step();
    lock.lock();
    clock_.wait_until(lock, changed_, began + gather_, [this] { return stopping_ || configured_; });
    clock_.wait_until(lock, changed_, began + kPollInterval, [this] { return stopping_ || woken_; });
  }
}

void Sequencer::step() {
  try {
    if (!recording_) {
      store_.run([&](kv::Transaction& tx) { drop_marks(tx); });
      return;
    }
    for (;;) {
      const std::size_t marks =
          store_.run([&](kv::Transaction& tx) { return sequence_marks(tx, kMarksPerTransaction); });
      if (marks == 0) return;
      catalog_.bus().publish(feed_channel(), [] { return events::Event{"feed"}; });
      if (marks < kMarksPerTransaction) return;
    }
  } catch (const Error& error) {
    log::error("The updates feed could not be written; it will be tried again: {}", error.what());
  }
}

}  // namespace divan::updates
