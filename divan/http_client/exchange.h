// A request on a handle of libcurl. For client.cc and async_client.cc only.
#pragma once

#include <curl/curl.h>
#include <fmt/core.h>

#include <charconv>
#include <cstring>

#include "divan/base/error.h"
#include "divan/http_client/request.h"

namespace divan::http_client {

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

inline Handle new_handle() {
  // Must be called before threads use the library; functions initialize their statics once.
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (done != CURLE_OK) throw internal_error("libcurl cannot be initialized.");
  Handle handle(curl_easy_init());
  if (!handle) throw internal_error("libcurl has no handle.");
  return handle;
}

// Receives a response in memory.
struct Receiver {
  Receiver(const Request& request, const Options& options)
      : max_bytes(options.max_response_bytes), has_memory(options.memory != nullptr) {
    if (has_memory) memory = {*options.memory, request.sender};
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  const std::size_t max_bytes;
  const bool has_memory;  // a limit
  ResponseMemory::Reservation memory{};
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

// A request on a handle.
class Exchange {
 public:
  Exchange(CURL* handle, const Request& request, const Options& options)
      : handle_(handle),
        url_(request.url),
        shown_url_(request.shown_url.empty() ? request.url : request.shown_url),
        idle_timeout_(request.idle_timeout),
        may_connect_(options.may_connect) {
    curl_easy_reset(handle);  // keeps its connections
    set(CURLOPT_URL, url_.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);  // documents and attachments may be named ".."
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_ERRORBUFFER, error_);
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    // Those of the environment are not used.
    set(CURLOPT_PROXY, options.proxy.c_str());
    set(CURLOPT_NOPROXY, "");
    if (may_connect_) {
      set(CURLOPT_OPENSOCKETFUNCTION, &Exchange::open_socket);
      set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
    }
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
    if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
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

  void set_timeout(std::chrono::milliseconds timeout) {
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  }

  // The body of `request`, which must outlive it, unless the method has none.
  void set_body(const Request& request) {
    if (request.method == "GET" || request.method == "HEAD" || request.method == "DELETE") return;
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.c_str());
  }

  // `receiver` must outlive it.
  void set_receiver(Receiver& receiver) {
    set(CURLOPT_WRITEFUNCTION, &Receiver::receive);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&receiver));
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    if (const auto code = curl_easy_setopt(handle_, option, value); code != CURLE_OK)
      throw bad_request(fmt::format("Invalid request to another server: {}.", curl_easy_strerror(code)));
  }

  // Throws unless the request has succeeded.
  void check(CURLcode code) const {
    if (stopped_ != nullptr && *stopped_) throw Error(503, "stopped", "The request was aborted.");
    if (code == CURLE_OK) return;
    if (is_refused_ && !has_socket_) {
      throw Error(403, "address_not_allowed",
                  fmt::format("{}: Connections to this address are not allowed.", shown_url_));
    }
    if (code == CURLE_OPERATION_TIMEDOUT || is_idle_)
      throw Error(504, "timeout", fmt::format("{} does not respond.", shown_url_));
    throw Error(503, "connection_failed",
                fmt::format("{}: {}.", shown_url_, error_[0] != 0 ? error_ : curl_easy_strerror(code)));
  }

  Response response(Receiver& receiver) const {
    return {.status = status(),
            .body = std::move(receiver.body),
            .cookies = cookies(),
            .location = location(),
            .retry_after = retry_after(),
            .memory = std::move(receiver.memory)};
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

  std::optional<std::chrono::seconds> retry_after() const {
    curl_header* header = nullptr;
    if (curl_easy_header(handle_, "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
      return std::nullopt;
    // Not CURLINFO_RETRY_AFTER, which newer versions of libcurl limit to six hours.
    const std::string_view value = header->value;
    if (!value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos) {
      std::int64_t seconds = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
      return error == std::errc() ? std::min(std::chrono::seconds(seconds), kLongestPause) : kLongestPause;
    }
    const time_t date = curl_getdate(header->value, nullptr);
    return std::chrono::seconds(std::max<time_t>(date == -1 ? 0 : date - time(nullptr), 0));
  }

  std::string location() const {
    const char* url = nullptr;
    curl_easy_getinfo(handle_, CURLINFO_REDIRECT_URL, &url);
    return url != nullptr ? url : "";
  }

 private:
  // Of Retry-After.
  static constexpr std::chrono::seconds kLongestPause{999'999'999};

  void set_tls(const Options& options) {
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

  static curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr* address) {
    auto& exchange = *static_cast<Exchange*>(self);
    if (!exchange.may_connect_(address->addr)) {
      exchange.is_refused_ = true;
      return CURL_SOCKET_BAD;
    }
    exchange.has_socket_ = true;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
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
  const std::string shown_url_;
  const std::chrono::milliseconds idle_timeout_;
  const std::function<bool(const sockaddr&)> may_connect_;
  bool is_refused_ = false;  // an address,
  bool has_socket_ = false;  // and another one is not
  const std::atomic<bool>* stopped_ = nullptr;
  curl_off_t bytes_ = -1;  // in both directions
  SteadyClock::time_point last_byte_{};
  bool is_idle_ = false;
  std::unique_ptr<curl_slist, CurlDeleter> headers_;
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace divan::http_client
