#include "divan/events/mailbox.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "divan/base/check.h"
#include "divan/base/log.h"

namespace divan::events {

namespace {

std::size_t size_of(const Event& event) {
  return sizeof(Event) + event.kind.size() + event.database.size() + event.id.size() + event.payload.size();
}

}  // namespace

Mailbox::Mailbox(std::uint64_t id, SubscribeOptions options)
    : id_(id),
      max_events_(options.max_events),
      max_bytes_(options.max_bytes),
      callback_(std::move(options.notify)) {}

Mailbox::Put Mailbox::put(const EventPtr& event) {
  Put result{0, false};
  {
    std::lock_guard lock(mutex_);
    DIVAN_CHECK(!closed_, "subscription {} gets an event after its end", id_);
    const bool was_empty = is_empty();
    if (max_events_ > 0) {
      waiting_.push_back(event);
      waiting_bytes_ += size_of(*event);
    } else {
      ++missed_;
    }
    while (!waiting_.empty() && (waiting_.size() > max_events_ || waiting_bytes_ > max_bytes_)) {
      waiting_bytes_ -= size_of(*waiting_.front());
      waiting_.pop_front();
      ++result.dropped;
    }
    DIVAN_CHECK(!waiting_.empty() || waiting_bytes_ == 0, "{} bytes in an empty mailbox", waiting_bytes_);
    missed_ += result.dropped;
    result.notify = was_empty && callback_ != nullptr;
  }
  changed_.notify_one();
  return result;
}

void Mailbox::notify() noexcept {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    callers_.push_back(std::this_thread::get_id());
  }
  try {
    callback_();
  } catch (const std::exception& e) {
    log::error("The callback of subscription {} failed: {}", id_, e.what());
  } catch (...) { log::error("The callback of subscription {} failed", id_); }
  {
    std::lock_guard lock(mutex_);
    const auto caller = std::find(callers_.begin(), callers_.end(), std::this_thread::get_id());
    DIVAN_CHECK(caller != callers_.end(), "a call of subscription {} was not counted", id_);
    callers_.erase(caller);
  }
  changed_.notify_all();
}

std::optional<Message> Mailbox::take() {
  std::lock_guard lock(mutex_);
  return take_locked();
}

std::optional<Message> Mailbox::take_until(const Clock& clock, MonotonicTime deadline) {
  std::unique_lock lock(mutex_);
  clock.wait_until(lock, changed_, deadline, [this] { return !is_empty(); });
  return take_locked();
}

std::optional<Message> Mailbox::take_locked() {
  if (missed_ > 0) return Message{id_, nullptr, std::exchange(missed_, 0)};
  if (waiting_.empty()) return std::nullopt;
  Message message{id_, std::move(waiting_.front()), 0};
  waiting_.pop_front();
  const std::size_t bytes = size_of(*message.event);
  DIVAN_CHECK(waiting_bytes_ >= bytes, "an event of {} bytes in a mailbox of {}", bytes, waiting_bytes_);
  waiting_bytes_ -= bytes;
  return message;
}

void Mailbox::close() {
  std::function<void()> callback;
  boost::container::deque<EventPtr> waiting;
  {
    std::unique_lock lock(mutex_);
    closed_ = true;
    // Do not wait for a call of this thread: its callback ends its own subscription.
    changed_.wait(lock, [this, self = std::this_thread::get_id()] { return only_called_by(self); });
    waiting.swap(waiting_);
    if (callers_.empty()) callback.swap(callback_);
  }
}

bool Mailbox::only_called_by(std::thread::id thread) const {
  return std::all_of(callers_.begin(), callers_.end(), [thread](auto id) { return id == thread; });
}

}  // namespace divan::events
