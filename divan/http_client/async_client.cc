#include "divan/http_client/async_client.h"

#include <pthread.h>

#include <map>
#include <thread>

#include "divan/base/mutex.h"
#include "divan/http_client/event_loop.h"
#include "divan/http_client/exchange.h"

namespace divan::http_client {
namespace {

// Connections without a request that are kept.
constexpr std::size_t kMaxIdleConnections = 200;

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
    Running(Added& added, long buffer_bytes, std::size_t& connecting_count)
        : number(added.number),
          request(std::move(added.request)),
          handle(new_handle()),
          exchange(handle.get(), request, added.options),
          receiver(request, added.options),
          ended(added.ended),
          connecting(connecting_count) {
      exchange.set_receiver(receiver);
      exchange.set_timeout(request.timeout);
      exchange.set(CURLOPT_TCP_KEEPALIVE, 1L);
      exchange.set(CURLOPT_BUFFERSIZE, buffer_bytes);
      exchange.set(CURLOPT_PRIVATE, static_cast<void*>(this));
      exchange.set(CURLOPT_MAXLIFETIME_CONN, kLongestConnectionSeconds);
      // The resolution of a name may take long, and cannot be aborted: its thread is not waited for.
      exchange.set(CURLOPT_QUICK_EXIT, 1L);
      exchange.set_body(request);
      exchange.set(CURLOPT_SOCKOPTFUNCTION, &Running::on_socket);
      exchange.set(CURLOPT_SOCKOPTDATA, static_cast<void*>(this));
      exchange.set(CURLOPT_PREREQFUNCTION, &Running::on_connected);
      exchange.set(CURLOPT_PREREQDATA, static_cast<void*>(this));
      set_connecting(true);
    }
    ~Running() { set_connecting(false); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    // A socket was created: also for a request that is repeated, since a kept connection has ended.
    static int on_socket(void* self, curl_socket_t, curlsocktype) {
      static_cast<Running*>(self)->set_connecting(true);
      return CURL_SOCKOPT_OK;
    }
    // The request is about to be sent.
    static int on_connected(void* self, char*, char*, int, int) {
      static_cast<Running*>(self)->set_connecting(false);
      return CURL_PREREQFUNC_OK;
    }
    void set_connecting(bool value) {
      if (value != is_connecting) value ? ++connecting : --connecting;
      is_connecting = value;
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
    std::size_t& connecting;  // the number of requests that have no connection
    bool is_connecting = false;
  };

  explicit Impl(const Settings& settings) : buffer_bytes(settings.buffer_bytes) {
    thread = std::thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), settings.thread_name.c_str());
  }

  void run() {
    while (take_commands()) {
      loop.run_once(connecting > 0);
      int left = 0;
      while (const auto* message = curl_multi_info_read(loop.multi(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        void* found = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
        auto& ended = *static_cast<Running*>(found);
        const auto code = message->data.result;
        auto result = ended.result(code);
        const auto call = ended.ended;
        auto request = remove(ended.number);
        result.request = std::move(request);
        call(std::move(result));
      }
    }
    while (!running.empty()) remove(running.begin()->first);
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
    for (const auto number : cancelled) remove(number);
    return true;
  }

  void begin(Added& added) {
    try {
      auto request = std::make_unique<Running>(added, buffer_bytes, connecting);
      if (curl_multi_add_handle(loop.multi(), request->handle.get()) != CURLM_OK)
        throw internal_error("libcurl has no handle.");
      running.emplace(added.number, std::move(request));
    } catch (...) { added.ended({.error = std::current_exception()}); }
  }

  // Its handle is not used again: libcurl 7.88 refuses to change the buffer of one whose request has failed,
  // or whose connection has other requests (HTTP/2).
  Request remove(std::uint64_t number) {
    const auto found = running.find(number);
    if (found == running.end()) return {};
    curl_multi_remove_handle(loop.multi(), found->second->handle.get());
    auto request = std::move(found->second->request);
    running.erase(found);
    return request;
  }

  // A kept connection is closed after this time, so that changes of names and of Options::may_connect have an
  // effect.
  static constexpr long kLongestConnectionSeconds = 60;

  const long buffer_bytes;
  EventLoop loop;
  // Used by the thread only:
  std::size_t connecting = 0;  // requests that have no connection
  std::map<std::uint64_t, std::unique_ptr<Running>> running;

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
