#include "divan/js/sandbox/watchdog.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "divan/js/protocol.h"

namespace divan::js::sandbox {
namespace {

constexpr std::chrono::milliseconds kTick{10};
// Ticks without a batch after which the thread sleeps until it is notified: a notification per batch would
// cost more than the ticks.
constexpr int kIdleTicks = 100;

}  // namespace

Watchdog::Watchdog(std::function<void()> interrupt, int server_fd)
    : interrupt_(std::move(interrupt)), server_fd_(server_fd) {
  pthread_getcpuclockid(pthread_self(), &script_clock_);
  thread_ = std::thread([this] { watch(); });
  thread_.detach();
}

void Watchdog::begin_batch(std::uint32_t invocation_ms, std::uint32_t batch_ms) {
  bool asleep = false;
  {
    std::lock_guard lock(mutex_);
    invocation_limit_ = Milliseconds(invocation_ms);
    batch_limit_ = Milliseconds(batch_ms);
    batch_expired_ = false;
    item_ = 0;
    ++batch_;
    asleep = asleep_;
  }
  if (asleep) wake_.notify_one();
}

void Watchdog::end_batch() {
  std::lock_guard lock(mutex_);
  ++batch_;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (batch_ % 2 == 1) watch_batch(lock);
    const auto idle = batch_;
    const auto begun = [&] { return batch_ != idle; };
    for (int tick = 0; tick < kIdleTicks && !begun(); ++tick) wake_.wait_for(lock, kTick);
    asleep_ = true;
    wake_.wait(lock, begun);
    asleep_ = false;
  }
}

void Watchdog::watch_batch(std::unique_lock<std::mutex>& lock) {
  const auto batch = batch_;
  const auto begin = std::chrono::steady_clock::now();
  seen_ = 0;
  while (batch_ == batch) {
    wake_.wait_for(lock, kTick);
    if (batch_ != batch) return;
    exit_if_alone();
    if (std::chrono::steady_clock::now() - begin > batch_limit_) batch_expired_ = true;
    watch_invocation();
  }
}

void Watchdog::watch_invocation() {
  const auto invocation = invocation_.load();
  const auto now = script_time();
  if (invocation != seen_ || invocation % 2 == 0) {
    seen_ = invocation;
    seen_since_ = now;
    return;
  }
  if (now - seen_since_ > invocation_limit_ + Milliseconds(protocol::kGraceMs)) exit_stuck();
  if (now - seen_since_ > invocation_limit_ && expired_ != invocation) {
    expired_ = invocation;
    interrupt_();
  }
}

// The script's thread does not write meanwhile: it first ends the batch, which waits for mutex_.
void Watchdog::exit_stuck() const {
  std::string frame(4, '\0');
  protocol::put_u8(frame, protocol::kStuck);
  protocol::put_u32(frame, item_);
  protocol::finish_frame(frame);
  [[maybe_unused]] const auto written = write(STDOUT_FILENO, frame.data(), frame.size());
  _exit(protocol::kExitStuck);
}

void Watchdog::exit_if_alone() const {
  pollfd server{server_fd_, POLLRDHUP, 0};
  if (poll(&server, 1, 0) > 0 && (server.revents & (POLLRDHUP | POLLHUP)) != 0) _exit(0);
}

std::chrono::nanoseconds Watchdog::script_time() const {
  timespec time{};
  clock_gettime(script_clock_, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace divan::js::sandbox
