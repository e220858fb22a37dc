// libcurl's multi interface on epoll. For async_client.cc only.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>

#include "divan/http_client/exchange.h"

namespace divan::http_client {

/// A file descriptor that is closed with it.
class Descriptor {
 public:
  /// Throws internal_error, with the message of errno, if `value` is negative.
  explicit Descriptor(int value);
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  const int value_;
};

/// A multi handle of libcurl and its sockets. It waits with epoll, so that an event costs the same however
/// many requests wait for a response. Not thread-safe, except wake().
class EventLoop {
 public:
  /// Throws internal_error.
  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  CURLM* multi() const { return multi_.get(); }
  template <class T>
  void set(CURLMoption option, T value) {
    if (curl_multi_setopt(multi_.get(), option, value) != CURLM_OK)
      throw internal_error("libcurl does not support an option.");
  }

  /// Waits for an event or wake(), and has libcurl handle the events. `connecting`: a request has no
  /// connection yet. libcurl 7.88 tries the next address of its host only when it inspects the request again,
  /// and neither waits for a socket nor sets a timer until then; so it inspects all of them every few
  /// milliseconds.
  void run_once(bool connecting);

  void wake();

 private:
  // libcurl's times are not those of Clock.
  using Time = std::chrono::steady_clock::time_point;
  static constexpr Time kNoTimer = Time::max();

  void watch(int operation, int socket, std::uint32_t events);
  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known);
  static int on_timer(CURLM*, long milliseconds, void* self);

  const Descriptor epoll_, wakeup_;
  Time timer_ = kNoTimer;
  Time inspected_at_{};  // all requests
  const std::unique_ptr<CURLM, MultiDeleter> multi_;
};

}  // namespace divan::http_client
