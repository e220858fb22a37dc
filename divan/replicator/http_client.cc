#include "divan/replicator/http_client.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>

#include "divan/base/error.h"

namespace divan::replicator {
namespace {

constexpr long kMaxRedirects = 5;
// A response that is read piece by piece is not received any further while so many bytes of it wait.
constexpr std::size_t kMaxWaitingBytes = 1 << 20;
constexpr int kPollMs = 500;  // after which it is seen that the client was stopped

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

// A request on a handle.
class Exchange {
 public:
  Exchange(CURL* handle, const HttpRequest& request, const HttpClientOptions& options,
           const std::atomic<bool>& stopped)
      : handle_(handle), url_(request.url), stopped_(stopped) {
    curl_easy_reset(handle);  // keeps its connections
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMaxRedirects);
    set(CURLOPT_POSTREDIR, static_cast<long>(CURL_REDIR_POST_ALL));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, error_);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME,
        static_cast<long>(std::chrono::ceil<std::chrono::seconds>(request.idle_timeout).count()));
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &Exchange::progress);
    set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
    if (!request.user.empty()) {
      set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
      set(CURLOPT_USERNAME, request.user.c_str());
      set(CURLOPT_PASSWORD, request.password.c_str());
    }
    add_header("Expect:");
    for (const auto& [name, value] : request.headers) add_header(name + ": " + value);
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void add_header(const std::string& line) {
    auto* const list = curl_slist_append(headers_.get(), line.c_str());
    if (list == nullptr) throw internal_error("libcurl has no memory.");
    headers_.release();
    headers_.reset(list);
    set(CURLOPT_HTTPHEADER, headers_.get());
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    if (const auto code = curl_easy_setopt(handle_, option, value); code != CURLE_OK)
      throw bad_request(fmt::format("Invalid request to another server: {}.", curl_easy_strerror(code)));
  }

  // Throws unless the request has succeeded.
  void check(CURLcode code) const {
    if (stopped_) throw Error(503, "stopped", "The replication is being stopped.");
    if (code == CURLE_OK) return;
    if (code == CURLE_OPERATION_TIMEDOUT)
      throw Error(504, "timeout", fmt::format("{} does not respond.", url_));
    throw Error(503, "connection_failed",
                fmt::format("{}: {}.", url_, error_[0] != 0 ? error_ : curl_easy_strerror(code)));
  }

  int status() const {
    long status = 0;
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

 private:
  static int progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Exchange*>(self)->stopped_ ? 1 : 0;
  }

  CURL* const handle_;
  const std::string url_;
  const std::atomic<bool>& stopped_;
  std::unique_ptr<curl_slist, CurlDeleter> headers_;
  char error_[CURL_ERROR_SIZE] = {};
};

// Receives a response in memory.
struct Receiver {
  const std::size_t max_bytes;
  std::string body{};
  bool is_too_large = false;

  static std::size_t receive(char* bytes, std::size_t, std::size_t size, void* self) {
    auto& receiver = *static_cast<Receiver*>(self);
    if (receiver.body.size() + size > receiver.max_bytes) {
      receiver.is_too_large = true;
      return 0;
    }
    receiver.body.append(bytes, size);
    return size;
  }
};

// Sends a body piece by piece.
struct Sender {
  const std::function<std::string()>& next;
  std::string piece{};
  std::size_t sent = 0;  // of the piece
  std::exception_ptr error{};

  static std::size_t send(char* to, std::size_t, std::size_t size, void* self) {
    auto& sender = *static_cast<Sender*>(self);
    try {
      if (sender.sent == sender.piece.size()) {
        sender.piece = sender.next();
        sender.sent = 0;
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
  Stream(const HttpRequest& request, const HttpClientOptions& options, const std::atomic<bool>& stopped)
      : exchange_(handle_.get(), request, options, stopped), multi_(curl_multi_init()) {
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

struct HttpClient::Impl {
  const HttpClientOptions options;
  const Handle handle = new_handle();
  std::atomic<bool> stopped = false;
};

HttpClient::HttpClient(HttpClientOptions options) : impl_(new Impl{options}) {}
HttpClient::~HttpClient() = default;

void HttpClient::stop() { impl_->stopped = true; }
bool HttpClient::stopped() const { return impl_->stopped; }

HttpResponse HttpClient::send(const HttpRequest& request) {
  CURL* const handle = impl_->handle.get();
  Exchange exchange(handle, request, impl_->options, impl_->stopped);
  Receiver receiver{impl_->options.max_response_bytes};
  Sender sender{request.next_of_body};
  exchange.set(CURLOPT_ACCEPT_ENCODING, "gzip");
  exchange.set(CURLOPT_WRITEFUNCTION, &Receiver::receive);
  exchange.set(CURLOPT_WRITEDATA, static_cast<void*>(&receiver));
  exchange.add_header("Accept: application/json");
  exchange.add_header("Content-Type: " + request.content_type);
  if (request.method == "HEAD") exchange.set(CURLOPT_NOBODY, 1L);
  if (request.next_of_body) {
    exchange.set(CURLOPT_UPLOAD, 1L);
    exchange.set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body_length));
    exchange.set(CURLOPT_READFUNCTION, &Sender::send);
    exchange.set(CURLOPT_READDATA, static_cast<void*>(&sender));
  } else if (request.method == "POST" || request.method == "PUT") {
    exchange.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    exchange.set(CURLOPT_POSTFIELDS, request.body.c_str());
  }
  const auto code = curl_easy_perform(handle);
  if (sender.error && !impl_->stopped) std::rethrow_exception(sender.error);
  if (receiver.is_too_large) throw ResponseTooLarge();
  exchange.check(code);
  return {exchange.status(), std::move(receiver.body)};
}

std::unique_ptr<HttpStream> HttpClient::open(const HttpRequest& request) {
  return std::make_unique<Stream>(request, impl_->options, impl_->stopped);
}

}  // namespace divan::replicator
