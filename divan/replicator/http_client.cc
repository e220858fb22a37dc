#include "divan/replicator/http_client.h"

#include <curl/curl.h>
#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <thread>

#include "divan/base/error.h"

namespace divan::replicator {
namespace {

// Of a request whose response is received in memory, however it drips.
constexpr long kLongestExchangeMs = 300'000;
// A response that is read piece by piece is not received any further while so many bytes of it wait.
constexpr std::size_t kMaxWaitingBytes = 1 << 20;
constexpr int kPollMs = 500;  // after which it is seen that the client was stopped
// Of the response to a long poll: heartbeats and a row, and how long it may take.
constexpr std::size_t kMaxLongPollBytes = 1 << 20;
constexpr long kLongPollTimeoutMs = 600'000;

using SteadyClock = std::chrono::steady_clock;

struct CurlDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
// CURL and CURLM are the same type.
struct MultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
using Handle = std::unique_ptr<CURL, CurlDeleter>;

Handle new_handle() {
  // Must be called before threads use the library; functions initialize their statics once.
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (done != CURLE_OK) throw internal_error("libcurl cannot be initialized.");
  Handle handle(curl_easy_init());
  if (!handle) throw internal_error("libcurl has no handle.");
  return handle;
}

// A handle of the calling thread, with the connections of earlier requests. A request may be sent while the
// body of another one is being read.
class ThreadHandle {
 public:
  ThreadHandle() {
    if (idle().empty()) idle().push_back(new_handle());
    handle_ = std::move(idle().back());
    idle().pop_back();
  }
  ~ThreadHandle() { idle().push_back(std::move(handle_)); }
  ThreadHandle(const ThreadHandle&) = delete;
  ThreadHandle& operator=(const ThreadHandle&) = delete;
  CURL* get() const { return handle_.get(); }

 private:
  static std::vector<Handle>& idle() {
    static thread_local std::vector<Handle> handles;
    return handles;
  }
  Handle handle_;
};

// A request on a handle.
class Exchange {
 public:
  Exchange(CURL* handle, const HttpRequest& request, const HttpOptions& options)
      : handle_(handle), url_(request.url), idle_timeout_(request.idle_timeout) {
    curl_easy_reset(handle);  // keeps its connections
    set(CURLOPT_URL, url_.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);  // documents and attachments may be named ".."
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, error_);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    set(CURLOPT_PROXY, options.proxy.c_str());  // empty: proxies of the environment are not used, either
    set_tls(options);
    if (!request.user.empty()) {
      set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
      set(CURLOPT_USERNAME, request.user.c_str());
      set(CURLOPT_PASSWORD, request.password.c_str());
    }
    add_header("Expect:");
    add_header("Accept: application/json");
    add_header("Content-Type: " + request.content_type);
    for (const auto& [name, value] : request.headers) add_header(name + ": " + value);
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Aborts the request when `stopped` is set, or after the idle timeout. `stopped` must outlive it.
  void set_abort_conditions(const std::atomic<bool>& stopped) {
    stopped_ = &stopped;
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Exchange::progress);
    set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
  }

  // The time until now does not count as idle: this side was not ready to send or receive.
  void reset_idle_timer() { last_byte_ = SteadyClock::now(); }

  // `body` must outlive it.
  void set_body(const std::string& body) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_POSTFIELDS, body.c_str());
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    if (const auto code = curl_easy_setopt(handle_, option, value); code != CURLE_OK)
      throw bad_request(fmt::format("Invalid request to another server: {}.", curl_easy_strerror(code)));
  }

  // Throws unless the request has succeeded.
  void check(CURLcode code) const {
    if (stopped_ != nullptr && *stopped_) throw Error(503, "stopped", "The replication is being stopped.");
    if (code == CURLE_OK) return;
    if (code == CURLE_OPERATION_TIMEDOUT || is_idle_)
      throw Error(504, "timeout", fmt::format("{} does not respond.", url_));
    throw Error(503, "connection_failed",
                fmt::format("{}: {}.", url_, error_[0] != 0 ? error_ : curl_easy_strerror(code)));
  }

  int status() const {
    long status = 0;
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

  std::vector<std::string> cookies() const {
    std::vector<std::string> cookies;
    curl_header* header = nullptr;
    while (curl_easy_header(handle_, "Set-Cookie", cookies.size(), CURLH_HEADER, -1, &header) == CURLHE_OK)
      cookies.emplace_back(header->value);
    return cookies;
  }

  std::string location() const {
    const char* url = nullptr;
    curl_easy_getinfo(handle_, CURLINFO_REDIRECT_URL, &url);
    return url != nullptr ? url : "";
  }

 private:
  void set_tls(const HttpOptions& options) {
    if (!options.verifies_certificates) {
      for (const auto option : {CURLOPT_SSL_VERIFYPEER, CURLOPT_SSL_VERIFYHOST, CURLOPT_PROXY_SSL_VERIFYPEER,
                                CURLOPT_PROXY_SSL_VERIFYHOST})
        set(option, 0L);
    }
    if (!options.authorities_file.empty()) {
      set(CURLOPT_CAINFO, options.authorities_file.c_str());
      set(CURLOPT_PROXY_CAINFO, options.authorities_file.c_str());
    }
    if (options.certificate_file.empty()) return;
    set(CURLOPT_SSLCERT, options.certificate_file.c_str());
    if (!options.key_file.empty()) set(CURLOPT_SSLKEY, options.key_file.c_str());
    if (!options.key_password.empty()) set(CURLOPT_KEYPASSWD, options.key_password.c_str());
  }

  void add_header(const std::string& line) {
    auto* const list = curl_slist_append(headers_.get(), line.c_str());
    if (list == nullptr) throw internal_error("libcurl has no memory.");
    headers_.release();
    headers_.reset(list);
    set(CURLOPT_HTTPHEADER, headers_.get());
  }

  static int progress(void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t sent) {
    auto& exchange = *static_cast<Exchange*>(self);
    const auto now = SteadyClock::now();
    if (std::exchange(exchange.bytes_, received + sent) != received + sent) exchange.last_byte_ = now;
    exchange.is_idle_ = now - exchange.last_byte_ >= exchange.idle_timeout_;
    return exchange.is_idle_ || *exchange.stopped_ ? 1 : 0;
  }

  CURL* const handle_;
  const std::string url_;
  const std::chrono::milliseconds idle_timeout_;
  const std::atomic<bool>* stopped_ = nullptr;
  curl_off_t bytes_ = -1;  // in both directions
  SteadyClock::time_point last_byte_{};
  bool is_idle_ = false;
  std::unique_ptr<curl_slist, CurlDeleter> headers_;
  char error_[CURL_ERROR_SIZE] = {};
};

// Receives a response in memory.
struct Receiver {
  const std::size_t max_bytes;
  ResponseMemory::Reservation memory{};
  const bool has_memory = false;  // a limit
  std::string body{};
  bool is_too_large = false;
  bool exceeds_memory = false;

  static std::size_t receive(char* bytes, std::size_t, std::size_t size, void* self) {
    auto& receiver = *static_cast<Receiver*>(self);
    if (receiver.body.size() + size > receiver.max_bytes) {
      receiver.is_too_large = true;
      return 0;
    }
    if (receiver.has_memory && receiver.memory.add(size) != MemoryLimit::none) {
      receiver.exceeds_memory = true;
      return 0;
    }
    receiver.body.append(bytes, size);
    return size;
  }
};

// Sends a body piece by piece.
struct Sender {
  const std::function<std::string()>& next;
  Exchange& exchange;
  std::string piece{};
  std::size_t sent = 0;  // of the piece
  std::exception_ptr error{};

  static std::size_t send(char* to, std::size_t, std::size_t size, void* self) {
    auto& sender = *static_cast<Sender*>(self);
    try {
      if (sender.sent == sender.piece.size()) {
        sender.piece = sender.next();
        sender.sent = 0;
        sender.exchange.reset_idle_timer();
      }
    } catch (...) {
      sender.error = std::current_exception();
      return CURL_READFUNC_ABORT;
    }
    const std::size_t count = std::min(size, sender.piece.size() - sender.sent);
    std::memcpy(to, sender.piece.data() + sender.sent, count);
    sender.sent += count;
    return count;
  }
};

class Stream final : public HttpStream {
 public:
  Stream(const HttpRequest& request, const HttpOptions& options, const std::atomic<bool>& stopped)
      : exchange_(handle_.get(), request, options), multi_(curl_multi_init()) {
    exchange_.set_abort_conditions(stopped);
    exchange_.set(CURLOPT_WRITEFUNCTION, &Stream::receive);
    exchange_.set(CURLOPT_WRITEDATA, static_cast<void*>(this));
    if (!multi_ || curl_multi_add_handle(multi_.get(), handle_.get()) != CURLM_OK)
      throw internal_error("libcurl has no handle.");
  }
  ~Stream() override { curl_multi_remove_handle(multi_.get(), handle_.get()); }

  int status() override {
    wait();
    return exchange_.status();
  }

  std::string next() override {
    wait();
    return std::exchange(waiting_, {});
  }

 private:
  static std::size_t receive(char* bytes, std::size_t, std::size_t size, void* self) {
    auto& stream = *static_cast<Stream*>(self);
    if (stream.waiting_.size() >= kMaxWaitingBytes) {
      stream.is_paused_ = true;
      return CURL_WRITEFUNC_PAUSE;
    }
    stream.waiting_.append(bytes, size);
    return size;
  }

  // Until there are bytes of the body, or it has ended.
  void wait() {
    exchange_.reset_idle_timer();
    if (is_paused_ && waiting_.empty()) {
      is_paused_ = false;
      curl_easy_pause(handle_.get(), CURLPAUSE_CONT);
    }
    while (waiting_.empty() && !has_ended_) {
      int running = 0;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) throw internal_error("libcurl has failed.");
      if (running == 0) has_ended_ = true;
      int left = 0;
      while (const auto* message = curl_multi_info_read(multi_.get(), &left)) {
        if (message->msg == CURLMSG_DONE) exchange_.check(message->data.result);
      }
      if (waiting_.empty() && !has_ended_) curl_multi_poll(multi_.get(), nullptr, 0, kPollMs, nullptr);
    }
  }

  const Handle handle_ = new_handle();
  Exchange exchange_;
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
  std::string waiting_;  // received, and not returned yet
  bool is_paused_ = false;
  bool has_ended_ = false;
};

}  // namespace

HttpResponse send(const HttpRequest& request, const HttpOptions& options, const std::atomic<bool>& stopped) {
  const ThreadHandle handle;
  Exchange exchange(handle.get(), request, options);
  Receiver receiver{.max_bytes = options.max_response_bytes, .has_memory = options.memory != nullptr};
  if (options.memory != nullptr) receiver.memory = {*options.memory, request.sender};
  Sender sender{request.next_of_body, exchange};
  exchange.set_abort_conditions(stopped);
  if (!request.next_of_body) exchange.set(CURLOPT_TIMEOUT_MS, kLongestExchangeMs);
  exchange.set(CURLOPT_ACCEPT_ENCODING, "gzip");
  exchange.set(CURLOPT_WRITEFUNCTION, &Receiver::receive);
  exchange.set(CURLOPT_WRITEDATA, static_cast<void*>(&receiver));
  if (request.method == "HEAD") exchange.set(CURLOPT_NOBODY, 1L);
  if (request.next_of_body) {
    exchange.set(CURLOPT_UPLOAD, 1L);
    exchange.set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body_length));
    exchange.set(CURLOPT_READFUNCTION, &Sender::send);
    exchange.set(CURLOPT_READDATA, static_cast<void*>(&sender));
  } else if (request.method == "POST" || request.method == "PUT") {
    exchange.set_body(request.body);
  }
  const auto code = curl_easy_perform(handle.get());
  if (sender.error && !stopped) std::rethrow_exception(sender.error);
  if (receiver.is_too_large) throw ResponseTooLarge();
  if (receiver.exceeds_memory)
    throw Error(503, "busy",
                "The responses that replications receive from other servers need too much memory.");
  exchange.check(code);
  return {exchange.status(), std::move(receiver.body), exchange.cookies(), exchange.location(),
          std::move(receiver.memory)};
}

std::unique_ptr<HttpStream> open(const HttpRequest& request, const HttpOptions& options,
                                 const std::atomic<bool>& stopped) {
  return std::make_unique<Stream>(request, options, stopped);
}

struct HttpWaiter::Impl {
  struct Request {
    Request(HttpRequest the_request, const HttpOptions& options, std::function<void()> the_ended)
        : request(std::move(the_request)),
          exchange(handle.get(), request, options),
          ended(std::move(the_ended)) {
      exchange.set(CURLOPT_WRITEFUNCTION, &Request::drop);
      exchange.set(CURLOPT_WRITEDATA, static_cast<void*>(this));
      exchange.set(CURLOPT_TIMEOUT_MS, kLongPollTimeoutMs);
      exchange.set(CURLOPT_TCP_KEEPALIVE, 1L);
      exchange.set(CURLOPT_BUFFERSIZE, kSmallBuffer);
      if (request.method == "POST") exchange.set_body(request.body);
    }
    static std::size_t drop(char*, std::size_t, std::size_t size, void* self) {
      auto& dropped = static_cast<Request*>(self)->dropped;
      dropped += size;
      return dropped <= kMaxLongPollBytes ? size : 0;
    }

    const HttpRequest request;
    const Handle handle = new_handle();
    Exchange exchange;
    const std::function<void()> ended;
    std::size_t dropped = 0;  // bytes
  };

  Impl() : multi(curl_multi_init()) {
    if (!multi) throw internal_error("libcurl has no handle.");
    thread = std::thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), "replicator_wait");
  }

  void run() {
    while (take_commands()) {
      int running = 0, left = 0;
      curl_multi_perform(multi.get(), &running);
      while (const auto* message = curl_multi_info_read(multi.get(), &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        const auto* const handle = message->easy_handle;
        const auto found = std::ranges::find_if(
            requests, [&](const auto& request) { return request.second->handle.get() == handle; });
        if (found == requests.end()) continue;
        const auto ended = found->second->ended;
        remove(found);
        ended();
      }
      curl_multi_poll(multi.get(), nullptr, 0, kLongestPollMs, nullptr);
    }
    while (!requests.empty()) remove(requests.begin());
  }

  // Returns false at the end.
  bool take_commands() {
    std::vector<std::pair<std::uint64_t, std::unique_ptr<Request>>> added;
    std::vector<std::uint64_t> cancelled;
    {
      std::lock_guard lock(mutex);
      if (stopping) return false;
      added.swap(to_add);
      cancelled.swap(to_cancel);
    }
    for (auto& [number, request] : added) {
      CURL* const handle = request->handle.get();
      requests.emplace(number, std::move(request));
      curl_multi_add_handle(multi.get(), handle);
    }
    for (const auto number : cancelled) {
      if (const auto found = requests.find(number); found != requests.end()) remove(found);
    }
    return true;
  }

  using Requests = std::map<std::uint64_t, std::unique_ptr<Request>>;
  void remove(Requests::iterator request) {
    curl_multi_remove_handle(multi.get(), request->second->handle.get());
    requests.erase(request);
  }

  static constexpr long kSmallBuffer = 1024;
  static constexpr int kLongestPollMs = 60'000;

  const std::unique_ptr<CURLM, MultiDeleter> multi;
  Requests requests;                                         // used by the thread only
  Mutex mutex{MutexRank::http_waiter, "HttpWaiter::mutex"};  // protects the members below
  std::vector<std::pair<std::uint64_t, std::unique_ptr<Request>>> to_add;
  std::vector<std::uint64_t> to_cancel;
  std::uint64_t last_number = 0;
  bool stopping = false;
  std::thread thread;
};

HttpWaiter::HttpWaiter() : impl_(std::make_unique<Impl>()) {}

HttpWaiter::~HttpWaiter() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  curl_multi_wakeup(impl_->multi.get());
  impl_->thread.join();
}

std::unique_ptr<HttpWaiter::Wait> HttpWaiter::wait_for(HttpRequest request, const HttpOptions& options,
                                                       std::function<void()> ended) {
  auto added = std::make_unique<Impl::Request>(std::move(request), options, std::move(ended));
  std::uint64_t number = 0;
  {
    std::lock_guard lock(impl_->mutex);
    number = ++impl_->last_number;
    impl_->to_add.emplace_back(number, std::move(added));
  }
  curl_multi_wakeup(impl_->multi.get());
  return std::make_unique<Wait>(*this, number);
}

void HttpWaiter::cancel(std::uint64_t number) {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->to_cancel.push_back(number);
  }
  curl_multi_wakeup(impl_->multi.get());
}

}  // namespace divan::replicator
