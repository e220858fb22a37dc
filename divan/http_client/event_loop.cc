#include "divan/http_client/event_loop.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "divan/base/error.h"
#include "divan/base/log.h"

namespace divan::http_client {
namespace {

constexpr std::size_t kMaxEvents = 64;
constexpr std::chrono::milliseconds kInspectionInterval(20);

// For epoll_wait().
int milliseconds_until(std::chrono::steady_clock::time_point time) {
  if (time == std::chrono::steady_clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
}

}  // namespace

Descriptor::Descriptor(int value) : value_(value) {
  if (value < 0) throw internal_error(fmt::format("Cannot wait for sockets: {}", std::strerror(errno)));
}

Descriptor::~Descriptor() { close(value_); }

EventLoop::EventLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      multi_(curl_multi_init()) {
  if (!multi_) throw internal_error("libcurl has no handle.");
  set(CURLMOPT_SOCKETFUNCTION, &EventLoop::on_socket);
  set(CURLMOPT_SOCKETDATA, static_cast<void*>(this));
  set(CURLMOPT_TIMERFUNCTION, &EventLoop::on_timer);
  set(CURLMOPT_TIMERDATA, static_cast<void*>(this));
  watch(EPOLL_CTL_ADD, wakeup_.get(), EPOLLIN);
}

void EventLoop::run_once(bool connecting) {
  const Time wait_until = connecting ? std::min(timer_, inspected_at_ + kInspectionInterval) : timer_;
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               milliseconds_until(wait_until));
  int running = 0;
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == wakeup_.get()) {
      eventfd_t value = 0;
      eventfd_read(wakeup_.get(), &value);
      continue;
    }
    int what = 0;
    if (event.events & EPOLLIN) what |= CURL_CSELECT_IN;
    if (event.events & EPOLLOUT) what |= CURL_CSELECT_OUT;
    if (event.events & (EPOLLERR | EPOLLHUP)) what |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi_.get(), event.data.fd, what, &running);
  }
  const Time now = std::chrono::steady_clock::now();
  if (timer_ <= now) {
    timer_ = kNoTimer;
    curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
  }
  if (connecting && inspected_at_ + kInspectionInterval <= now) {
    inspected_at_ = now;
    // Deprecated since it inspects all requests, which is what is needed here.
    CURL_IGNORE_DEPRECATION(curl_multi_socket_all(multi_.get(), &running);)
  }
}

void EventLoop::wake() { eventfd_write(wakeup_.get(), 1); }

void EventLoop::watch(int operation, int socket, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = socket}};
  // The request ends at its time-out.
  if (epoll_ctl(epoll_.get(), operation, socket, &event) != 0 && operation != EPOLL_CTL_DEL)
    log::error("Cannot wait for a socket: {}", std::strerror(errno));
}

int EventLoop::on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
  auto& loop = *static_cast<EventLoop*>(self);
  if (what == CURL_POLL_REMOVE) {
    loop.watch(EPOLL_CTL_DEL, socket, 0);
    return 0;
  }
  std::uint32_t events = 0;
  if (what & CURL_POLL_IN) events |= EPOLLIN;
  if (what & CURL_POLL_OUT) events |= EPOLLOUT;
  loop.watch(known == nullptr ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, socket, events);
  if (known == nullptr) curl_multi_assign(loop.multi(), socket, self);
  return 0;
}

int EventLoop::on_timer(CURLM*, long milliseconds, void* self) {
  static_cast<EventLoop*>(self)->timer_ =
      milliseconds < 0 ? kNoTimer
                       : std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  return 0;
}

}  // namespace divan::http_client
