#include "divan/base/worker_loop.h"

#include <pthread.h>

#include <exception>

#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan {
namespace {

constexpr Duration kPauseAfterError = std::chrono::seconds(1);

}  // namespace

WorkerLoop::WorkerLoop(const Clock& clock, std::string name, Step step)
    : clock_(clock), name_(std::move(name)), step_(std::move(step)) {}

WorkerLoop::~WorkerLoop() {
  stop();
  join();
}

void WorkerLoop::start() {
  DIVAN_CHECK(!thread_.joinable(), "the loop `{}` is started twice", name_);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), name_.c_str());
}

void WorkerLoop::join() {
  DIVAN_CHECK(thread_.get_id() != std::this_thread::get_id(), "the loop `{}` joins itself", name_);
  if (thread_.joinable()) thread_.join();
}

void WorkerLoop::run() {
  while (!notifier_->stopped()) {
    MonotonicTime next;
    try {
      next = step_();
    } catch (const std::exception& error) {
      log::error("The thread `{}` continues after an error: {}", name_, error.what());
      if (!notifier_->pause_until(clock_, clock_.now() + kPauseAfterError)) return;
      continue;
    }
    notifier_->wait_until(clock_, next);
  }
}

}  // namespace divan
