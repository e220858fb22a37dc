#include "divan/http_client/async_client.h"

#include <fmt/core.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <thread>

#include "divan/base/log.h"
#include "divan/base/mutex.h"
#include "divan/http_client/exchange.h"

namespace divan::http_client {
namespace {

// Handles and connections without a request that are kept. A handle has some kilobytes.
constexpr std::size_t kMaxIdleHandles = 200;
constexpr std::size_t kMaxIdleConnections = 200;
constexpr std::size_t kMaxEvents = 64;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {
    if (value < 0) throw internal_error(fmt::format("Cannot wait for sockets: {}", std::strerror(errno)));
  }
  ~Descriptor() { close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  const int value_;
};

// A multi handle of libcurl and its sockets. It waits with epoll, so that an event costs the same however
// many requests wait for a response. Not thread-safe, except wake().
class EventLoop {
 public:
  EventLoop()
      : epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        multi_(curl_multi_init()) {
    if (!multi_) throw internal_error("libcurl has no handle.");
    set(CURLMOPT_SOCKETFUNCTION, static_cast<curl_socket_callback>(on_socket));
    set(CURLMOPT_SOCKETDATA, static_cast<void*>(this));
    set(CURLMOPT_TIMERFUNCTION, static_cast<curl_multi_timer_callback>(on_timer));
    set(CURLMOPT_TIMERDATA, static_cast<void*>(this));
    watch(EPOLL_CTL_ADD, wakeup_.get(), EPOLLIN);
  }

  CURLM* multi() const { return multi_.get(); }
  template <class T>
  void set(CURLMoption option, T value) {
    if (curl_multi_setopt(multi_.get(), option, value) != CURLM_OK)
      throw internal_error("libcurl does not support an option.");
  }

  // Waits for an event or wake(), and has libcurl handle the events.
  void run_once() {
    std::array<epoll_event, kMaxEvents> events;
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), time_left());
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
    if (timer_ > std::chrono::steady_clock::now()) return;
    timer_ = kNoTimer;
    curl_multi_socket_action(multi_.get(), CURL_SOCKET_TIMEOUT, 0, &running);
  }

  void wake() { eventfd_write(wakeup_.get(), 1); }

 private:
  // libcurl's times are not those of Clock.
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Time kNoTimer = Time::max();

  // Milliseconds, for epoll_wait().
  int time_left() const {
    if (timer_ == kNoTimer) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(timer_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, std::numeric_limits<int>::max()));
  }

  void watch(int operation, int socket, std::uint32_t events) {
    epoll_event event{.events = events, .data = {.fd = socket}};
    // The request ends at its time-out.
    if (epoll_ctl(epoll_.get(), operation, socket, &event) != 0 && operation != EPOLL_CTL_DEL)
      log::error("Cannot wait for a socket: {}", std::strerror(errno));
  }

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
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

  static int on_timer(CURLM*, long milliseconds, void* self) {
    static_cast<EventLoop*>(self)->timer_ =
        milliseconds < 0 ? kNoTimer
                         : std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    return 0;
  }

  const Descriptor epoll_, wakeup_;
  Time timer_ = kNoTimer;
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
};

}  // namespace

struct AsyncClient::Impl {
  using Ended = std::function<void(Result)>;

  // A request that has not begun.
  struct Added {
    std::uint64_t number;
    Request request;
    Options options;
    Ended ended;
  };

  struct Running {
    Running(Handle the_handle, Added& added, long buffer_bytes)
        : number(added.number),
          request(std::move(added.request)),
          handle(std::move(the_handle)),
          exchange(handle.get(), request, added.options),
          receiver(request, added.options),
          ended(added.ended) {
      exchange.set_receiver(receiver);
      exchange.set_timeout(request.timeout);
      exchange.set(CURLOPT_TCP_KEEPALIVE, 1L);
      exchange.set(CURLOPT_BUFFERSIZE, buffer_bytes);
      exchange.set(CURLOPT_PRIVATE, static_cast<void*>(this));
      exchange.set(CURLOPT_MAXLIFETIME_CONN, kLongestConnectionSeconds);
      // The resolution of a name may take long, and cannot be aborted: its thread is not waited for.
      exchange.set(CURLOPT_QUICK_EXIT, 1L);
      exchange.set_body(request);
    }

    Result result(CURLcode code) {
      Result result{.is_too_large = receiver.is_too_large, .exceeds_memory = receiver.exceeds_memory};
      try {
        if (!result.is_too_large && !result.exceeds_memory) exchange.check(code);
        result.response = exchange.response(receiver);
      } catch (...) { result.error = std::current_exception(); }
      return result;
    }

    const std::uint64_t number;
    Request request;
    Handle handle;
    Exchange exchange;
    Receiver receiver;
    const Ended ended;
  };

  explicit Impl(const Settings& settings) : buffer_bytes(settings.buffer_bytes) {
    thread = std::thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), settings.thread_name.c_str());
  }

  void run() {
    while (take_commands()) {
      loop.run_once();
      int left = 0;
      while (const auto* message = curl_multi_info_read(loop.multi(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        void* found = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
        auto& ended = *static_cast<Running*>(found);
        const auto code = message->data.result;
        auto result = ended.result(code);
        const auto call = ended.ended;
        auto request = remove(ended.number, code == CURLE_OK);
        result.request = std::move(request);
        call(std::move(result));
      }
    }
    while (!running.empty()) remove(running.begin()->first, false);
  }

  // Needs the mutex.
  bool has_no_commands() const { return to_add.empty() && to_cancel.empty(); }

  // Returns false at the end.
  bool take_commands() {
    std::vector<Added> added;
    std::vector<std::uint64_t> cancelled;
    {
      std::lock_guard lock(mutex);
      if (stopping) return false;
      added.swap(to_add);
      cancelled.swap(to_cancel);
    }
    for (auto& each : added) begin(each);
    // libcurl counts those in use, too.
    if (!added.empty())
      loop.set(CURLMOPT_MAXCONNECTS, static_cast<long>(running.size() + kMaxIdleConnections));
    for (const auto number : cancelled) remove(number, false);
    return true;
  }

  void begin(Added& added) {
    try {
      auto request = std::make_unique<Running>(take_handle(), added, buffer_bytes);
      if (curl_multi_add_handle(loop.multi(), request->handle.get()) != CURLM_OK)
        throw internal_error("libcurl has no handle.");
      running.emplace(added.number, std::move(request));
    } catch (...) { added.ended({.error = std::current_exception()}); }
  }

  // A handle whose request has failed may not be used again: after a failed resolution libcurl 7.88 refuses
  // to change its buffer.
  Request remove(std::uint64_t number, bool keeps_handle) {
    const auto found = running.find(number);
    if (found == running.end()) return {};
    auto handle = std::move(found->second->handle);
    curl_multi_remove_handle(loop.multi(), handle.get());
    auto request = std::move(found->second->request);
    running.erase(found);
    if (keeps_handle && idle.size() < kMaxIdleHandles) idle.push_back(std::move(handle));
    return request;
  }

  Handle take_handle() {
    if (idle.empty()) return new_handle();
    auto handle = std::move(idle.back());
    idle.pop_back();
    return handle;
  }

  // A kept connection is closed after this time, so that changes of names and of Options::may_connect have an
  // effect.
  static constexpr long kLongestConnectionSeconds = 60;

  const long buffer_bytes;
  EventLoop loop;
  // Used by the thread only:
  std::map<std::uint64_t, std::unique_ptr<Running>> running;
  std::vector<Handle> idle;

  Mutex mutex{MutexRank::async_client, "AsyncClient::mutex"};  // protects the members below
  std::vector<Added> to_add;
  std::vector<std::uint64_t> to_cancel;
  std::uint64_t last_number = 0;
  bool stopping = false;
  std::thread thread;
};

AsyncClient::AsyncClient(const Settings& settings) : impl_(std::make_unique<Impl>(settings)) {}

AsyncClient::~AsyncClient() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->loop.wake();
  impl_->thread.join();
}

std::unique_ptr<AsyncClient::Pending> AsyncClient::send(Request request, const Options& options,
                                                        std::function<void(Result)> ended) {
  std::uint64_t number = 0;
  bool is_first = false;
  {
    std::lock_guard lock(impl_->mutex);
    is_first = impl_->has_no_commands();
    number = ++impl_->last_number;
    impl_->to_add.push_back({number, std::move(request), options, std::move(ended)});
  }
  if (is_first) impl_->loop.wake();
  return std::make_unique<Pending>(*this, number);
}

void AsyncClient::cancel(std::uint64_t number) {
  bool is_first = false;
  {
    std::lock_guard lock(impl_->mutex);
    is_first = impl_->has_no_commands();
    impl_->to_cancel.push_back(number);
  }
  if (is_first) impl_->loop.wake();
}

}  // namespace divan::http_client
