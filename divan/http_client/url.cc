#include "divan/http_client/url.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "divan/base/error.h"

namespace divan::http_client {
namespace {

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part(CURLU* url, CURLUPart which) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return {};
  std::string result = text;
  curl_free(text);
  return result;
}

using UrlHandle = std::unique_ptr<CURLU, UrlDeleter>;

UrlHandle new_url() {
  UrlHandle url(curl_url());
  if (!url) throw internal_error("libcurl has no memory.");
  return url;
}

}  // namespace

bool is_proxy_url(const std::string& text) {
  const auto url = new_url();
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    return false;
  const auto scheme = part(url.get(), CURLUPART_SCHEME);
  return scheme == "http" || scheme == "https" || scheme == "socks5" || scheme == "socks5h";
}

Url parse_url(const std::string& text) {
  const auto url = new_url();
  if (const auto code = curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0); code != CURLUE_OK)
    throw bad_request(fmt::format("{}.", curl_url_strerror(code)));
  const auto scheme = part(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") throw bad_request("The scheme is neither http nor https.");
  if (!part(url.get(), CURLUPART_FRAGMENT).empty()) throw bad_request("It has a fragment.");
  Url result;
  result.host = part(url.get(), CURLUPART_HOST);
  std::ranges::transform(result.host, result.host.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  result.origin = fmt::format("{}://{}:{}", scheme, result.host, part(url.get(), CURLUPART_PORT));
  if (result.host.starts_with('[')) result.host = result.host.substr(1, result.host.size() - 2);
  if (result.host.ends_with('.')) result.host.pop_back();
  result.has_user = !part(url.get(), CURLUPART_USER).empty() || !part(url.get(), CURLUPART_PASSWORD).empty();
  return result;
}

}  // namespace divan::http_client
