#include "divan/http_client/async_client.h"

#include <pthread.h>

#include <map>
#include <thread>

#include "divan/base/mutex.h"
#include "divan/http_client/exchange.h"

namespace divan::http_client {
namespace {

// Handles without a request that are kept: each has some kilobytes.
constexpr std::size_t kMaxIdleHandles = 200;
constexpr int kLongestPollMs = 60'000;

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

  explicit Impl(const Settings& settings) : buffer_bytes(settings.buffer_bytes), multi(curl_multi_init()) {
    if (!multi) throw internal_error("libcurl has no handle.");
    thread = std::thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), settings.thread_name.c_str());
  }

  void run() {
    while (take_commands()) {
      int running_count = 0, left = 0;
      curl_multi_perform(multi.get(), &running_count);
      while (const auto* message = curl_multi_info_read(multi.get(), &left)) {
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
      curl_multi_poll(multi.get(), nullptr, 0, kLongestPollMs, nullptr);
    }
    while (!running.empty()) remove(running.begin()->first, false);
  }

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
    for (const auto number : cancelled) remove(number, false);
    return true;
  }

  void begin(Added& added) {
    try {
      auto request = std::make_unique<Running>(take_handle(), added, buffer_bytes);
      if (curl_multi_add_handle(multi.get(), request->handle.get()) != CURLM_OK)
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
    curl_multi_remove_handle(multi.get(), handle.get());
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
  const std::unique_ptr<CURLM, MultiDeleter> multi;
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
  curl_multi_wakeup(impl_->multi.get());
  impl_->thread.join();
}

std::unique_ptr<AsyncClient::Pending> AsyncClient::send(Request request, const Options& options,
                                                        std::function<void(Result)> ended) {
  std::uint64_t number = 0;
  {
    std::lock_guard lock(impl_->mutex);
    number = ++impl_->last_number;
    impl_->to_add.push_back({number, std::move(request), options, std::move(ended)});
  }
  curl_multi_wakeup(impl_->multi.get());
  return std::make_unique<Pending>(*this, number);
}

void AsyncClient::cancel(std::uint64_t number) {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->to_cancel.push_back(number);
  }
  curl_multi_wakeup(impl_->multi.get());
}

}  // namespace divan::http_client
