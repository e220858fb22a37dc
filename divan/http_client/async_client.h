// Many HTTP requests at a time, on one thread.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "divan/http_client/request.h"

namespace divan::http_client {

/// Sends any number of requests at a time on one thread, which keeps their connections. Thread-safe.
class AsyncClient {
 public:
  struct Settings {
    std::string thread_name = "http_client";  ///< at most 15 bytes
    /// Of the receive buffer of a connection, in bytes: a small one is for many requests that wait for
    /// little.
    long buffer_bytes = 16'384;
  };
  explicit AsyncClient(const Settings& settings);
  /// Ends all requests, without calls.
  ~AsyncClient();
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  /// How a request has ended.
  struct Result {
    Response response{};
    std::exception_ptr error{};  ///< as send() throws; null if there is a response
    /// The body is only the beginning: it has more than `max_response_bytes`, or Options::memory is used up.
    bool is_too_large = false;
    bool exceeds_memory = false;
    Request request{};  ///< the request that was sent
  };

  /// A request; it is aborted with this object, without a call. Must not outlive the client.
  class Pending {
   public:
    Pending(AsyncClient& client, std::uint64_t number) : client_(client), number_(number) {}
    ~Pending() { client_.cancel(number_); }
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

   private:
    AsyncClient& client_;
    const std::uint64_t number_;
  };
  /// Sends a request. `ended` is called once, on the client's thread, with the response or the error. It must
  /// be quick, must not throw, and may still be called after the end of the Pending, if that races with it.
  [[nodiscard]] std::unique_ptr<Pending> send(Request request, const Options& options,
                                              std::function<void(Result)> ended);

 private:
  struct Impl;
  void cancel(std::uint64_t number);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace divan::http_client
