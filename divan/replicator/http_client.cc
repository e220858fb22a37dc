#include "divan/replicator/http_client.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <atomic>

#include "divan/base/error.h"

namespace divan::replicator {
namespace {

constexpr long kMaxRedirects = 5;

struct CurlDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

void initialize() {
  // Must be called before threads use the library; functions initialize their statics once.
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (done != CURLE_OK) throw internal_error("libcurl cannot be initialized.");
}

}  // namespace

struct HttpClient::Impl {
  explicit Impl(HttpClientOptions the_options) : options(the_options) {
    initialize();
    handle.reset(curl_easy_init());
    if (!handle) throw internal_error("libcurl has no handle.");
  }

  static std::size_t receive(char* bytes, std::size_t, std::size_t size, void* self) {
    auto& impl = *static_cast<Impl*>(self);
    if (impl.body.size() + size > impl.options.max_response_bytes) {
      impl.is_too_large = true;
      return 0;
    }
    impl.body.append(bytes, size);
    return size;
  }

  static int progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return static_cast<Impl*>(self)->stopped ? 1 : 0;
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    if (const auto code = curl_easy_setopt(handle.get(), option, value); code != CURLE_OK)
      throw bad_request(fmt::format("Invalid request to another server: {}.", curl_easy_strerror(code)));
  }

  const HttpClientOptions options;
  std::unique_ptr<CURL, CurlDeleter> handle;
  std::atomic<bool> stopped = false;
  std::string body;
  bool is_too_large = false;
  char error[CURL_ERROR_SIZE] = {};
};

HttpClient::HttpClient(HttpClientOptions options) : impl_(std::make_unique<Impl>(options)) {}
HttpClient::~HttpClient() = default;

void HttpClient::stop() { impl_->stopped = true; }
bool HttpClient::stopped() const { return impl_->stopped; }

HttpResponse HttpClient::send(const HttpRequest& request) {
  auto& impl = *impl_;
  curl_easy_reset(impl.handle.get());  // keeps its connections
  impl.body.clear();
  impl.is_too_large = false;
  impl.error[0] = 0;
  impl.set(CURLOPT_URL, request.url.c_str());
  impl.set(CURLOPT_PROTOCOLS_STR, "http,https");
  impl.set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  impl.set(CURLOPT_FOLLOWLOCATION, 1L);
  impl.set(CURLOPT_MAXREDIRS, kMaxRedirects);
  impl.set(CURLOPT_POSTREDIR, static_cast<long>(CURL_REDIR_POST_ALL));
  impl.set(CURLOPT_NOSIGNAL, 1L);
  impl.set(CURLOPT_ERRORBUFFER, impl.error);
  impl.set(CURLOPT_ACCEPT_ENCODING, "gzip");
  impl.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(impl.options.connect_timeout.count()));
  impl.set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  impl.set(CURLOPT_LOW_SPEED_TIME,
           static_cast<long>(std::chrono::ceil<std::chrono::seconds>(request.idle_timeout).count()));
  impl.set(CURLOPT_WRITEFUNCTION, &Impl::receive);
  impl.set(CURLOPT_WRITEDATA, static_cast<void*>(&impl));
  impl.set(CURLOPT_NOPROGRESS, 0L);
  impl.set(CURLOPT_XFERINFOFUNCTION, &Impl::progress);
  impl.set(CURLOPT_XFERINFODATA, static_cast<void*>(&impl));
  if (!request.user.empty()) {
    impl.set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    impl.set(CURLOPT_USERNAME, request.user.c_str());
    impl.set(CURLOPT_PASSWORD, request.password.c_str());
  }
  curl_slist* list = curl_slist_append(nullptr, "Accept: application/json");
  list = curl_slist_append(list, "Content-Type: application/json");
  list = curl_slist_append(list, "Expect:");
  for (const auto& [name, value] : request.headers)
    list = curl_slist_append(list, (name + ": " + value).c_str());
  const std::unique_ptr<curl_slist, CurlDeleter> headers(list);
  impl.set(CURLOPT_HTTPHEADER, headers.get());
  impl.set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "HEAD") impl.set(CURLOPT_NOBODY, 1L);
  if (request.method == "POST" || request.method == "PUT") {
    impl.set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    impl.set(CURLOPT_POSTFIELDS, request.body.c_str());
  }
  const auto code = curl_easy_perform(impl.handle.get());
  if (impl.stopped) throw Error(503, "stopped", "The replication is being stopped.");
  if (impl.is_too_large) throw ResponseTooLarge();
  if (code == CURLE_OPERATION_TIMEDOUT)
    throw Error(504, "timeout", fmt::format("{} does not respond.", request.url));
  if (code != CURLE_OK)
    throw Error(
        503, "connection_failed",
        fmt::format("{}: {}.", request.url, impl.error[0] != 0 ? impl.error : curl_easy_strerror(code)));
  long status = 0;
  curl_easy_getinfo(impl.handle.get(), CURLINFO_RESPONSE_CODE, &status);
  return {static_cast<int>(status), std::move(impl.body)};
}

}  // namespace divan::replicator
