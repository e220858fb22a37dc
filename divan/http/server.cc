#include "divan/http/server.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <thread>

#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/http/loop.h"
#include "divan/http/serializer.h"

namespace divan::http {
namespace {

// The pause of accepting after the process has run out of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

std::string too_many_connections() {
  auto response =
      error_response(Error(503, "too_many_connections", "The server has reached its limit of connections."));
  std::string out;
  append_head(out, response, {Framing::length, response.body.size(), "close", {}});
  return out + response.body;
}

}  // namespace

// A port, whose connections are accepted on the first loop.
struct Listener {
  explicit Listener(asio::io_context& context) : acceptor(context), pause(context) {}

  Acceptor acceptor;
  Timer pause;
  std::optional<TlsContext> tls;
  std::uint16_t port = 0;
};

struct Server::Impl {
  Impl(Options options_in, const Clock& clock, Handler handler_in);

  void listen(Listener& listener, std::uint16_t port);
  void accept(Listener& listener);
  void on_accept(Listener& listener, const ErrorCode& ec, Loop& loop, PlainSocket socket);
  void adopt(Listener& listener, Loop& loop, PlainSocket socket);
  void refuse(Listener& listener, PlainSocket socket) const;
  Loop& least_loaded() const;
  std::size_t connections() const;
  void start_threads();
  bool responds(std::chrono::milliseconds timeout) const;
  void stop();

  const Options options;
  const Handler handler;
  const std::string refusal = too_many_connections();
  std::vector<std::unique_ptr<Loop>> loops;
  std::optional<Listener> plain;
  std::optional<Listener> encrypted;
  std::vector<std::thread> threads;
  std::once_flag stopped;
};

Server::Impl::Impl(Options options_in, const Clock& clock, Handler handler_in)
    : options(std::move(options_in)), handler(std::move(handler_in)) {
  const auto count =
      options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < count; ++i) loops.push_back(std::make_unique<Loop>(options, clock, handler));
  auto& first = loops.front()->context();
  listen(plain.emplace(first), options.port);
  if (options.tls) {
    encrypted.emplace(first).tls.emplace(*options.tls);
    listen(*encrypted, options.tls->port);
    accept(*encrypted);
  }
  accept(*plain);
  start_threads();
}

void Server::Impl::listen(Listener& listener, std::uint16_t port) {
  auto& acceptor = listener.acceptor;
  ErrorCode ec;
  const auto address = asio::ip::make_address(options.address, ec);
  const Tcp::endpoint endpoint(address, port);
  if (!ec) acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(Acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(Acceptor::max_listen_connections, ec);
  if (!ec) listener.port = acceptor.local_endpoint(ec).port();
  if (ec)
    throw internal_error(
        fmt::format("Cannot listen on {} port {}: {}.", options.address, port, ec.message()));
}

void Server::Impl::accept(Listener& listener) {
  auto& loop = least_loaded();
  listener.acceptor.async_accept(loop.context(), [&](const ErrorCode& ec, PlainSocket socket) {
    on_accept(listener, ec, loop, std::move(socket));
  });
}

void Server::Impl::on_accept(Listener& listener, const ErrorCode& ec, Loop& loop, PlainSocket socket) {
  if (!listener.acceptor.is_open()) return;
  if (ec) {
    log::warning("Accepting an HTTP connection failed: {}", ec.message());
    listener.pause.expires_after(kAcceptPause);
    listener.pause.async_wait([&](const ErrorCode& cancelled) {
      if (!cancelled) accept(listener);
    });
    return;
  }
  if (connections() >= options.max_connections) {
    refuse(listener, std::move(socket));
  } else {
    adopt(listener, loop, std::move(socket));
  }
  accept(listener);
}

void Server::Impl::adopt(Listener& listener, Loop& loop, PlainSocket socket) {
  std::unique_ptr<TlsSession> tls;
  try {
    if (listener.tls) tls = listener.tls->accept(socket.native_handle());
  } catch (const Error& error) {
    log::error("A connection failed. {}", error.reason());
    return;
  }
  loop.expect_connection();
  asio::post(loop.context(), [&loop, adopted = Socket(std::move(socket), std::move(tls))]() mutable {
    loop.adopt(std::move(adopted));
  });
}

// Best effort: does not wait until the socket is writable. A handshake would wait.
void Server::Impl::refuse(Listener& listener, PlainSocket socket) const {
  if (listener.tls) return;
  ErrorCode ec;
  socket.non_blocking(true, ec);
  socket.write_some(asio::buffer(refusal), ec);
  socket.shutdown(PlainSocket::shutdown_both, ec);
}

Loop& Server::Impl::least_loaded() const {
  DIVAN_CHECK(!loops.empty(), "a server without threads");
  return **std::min_element(loops.begin(), loops.end(),
                            [](const auto& a, const auto& b) { return a->connections() < b->connections(); });
}

std::size_t Server::Impl::connections() const {
  std::size_t sum = 0;
  for (const auto& loop : loops) sum += loop->connections();
  return sum;
}

void Server::Impl::start_threads() {
  for (const auto& loop : loops) {
    threads.emplace_back([&loop = *loop] { loop.run(); });
    const auto name = fmt::format("divan-io-{}", threads.size());
    pthread_setname_np(threads.back().native_handle(), name.c_str());
  }
}

bool Server::Impl::responds(std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<std::future<void>> answers;
  for (const auto& loop : loops) {
    std::promise<void> answer;
    answers.push_back(answer.get_future());
    asio::post(loop->context(), [answer = std::move(answer)]() mutable { answer.set_value(); });
  }
  return std::ranges::all_of(
      answers, [&](const auto& answer) { return answer.wait_until(deadline) == std::future_status::ready; });
}

void Server::Impl::stop() {
  std::call_once(stopped, [this] {
    asio::post(loops.front()->context(), [this] {
      for (auto* listener : {&plain, &encrypted}) {
        if (!*listener) continue;
        ErrorCode ec;
        (*listener)->acceptor.close(ec);
        (*listener)->pause.cancel();
      }
    });
    for (const auto& loop : loops) {
      asio::post(loop->context(), [&loop = *loop] { loop.begin_stop(); });
    }
    for (auto& thread : threads) thread.join();
  });
}

Server::Server(Options options, const Clock& clock, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(options), clock, std::move(handler))) {}
Server::~Server() { stop(); }

std::uint16_t Server::port() const { return impl_->plain->port; }
std::uint16_t Server::tls_port() const { return impl_->encrypted ? impl_->encrypted->port : 0; }
std::size_t Server::connections() const { return impl_->connections(); }
bool Server::responds(std::chrono::milliseconds timeout) const { return impl_->responds(timeout); }
void Server::stop() { impl_->stop(); }

}  // namespace divan::http
