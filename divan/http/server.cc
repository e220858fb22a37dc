#include "divan/http/server.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
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

struct Server::Impl {
  Impl(Options options_in, const Clock& clock, Handler handler_in);

  void listen();
  void accept();
  void on_accept(const ErrorCode& ec, Loop& loop, Socket socket);
  void refuse(Socket socket) const;
  Loop& least_loaded() const;
  std::size_t connections() const;
  void start_threads();
  void stop();

  const Options options;
  const Handler handler;
  const std::string refusal = too_many_connections();
  std::vector<std::unique_ptr<Loop>> loops;
  std::optional<Acceptor> acceptor;   // on the first loop
  std::optional<Timer> accept_pause;  // on the first loop
  std::uint16_t port = 0;
  std::vector<std::thread> threads;
  std::once_flag stopped;
};

Server::Impl::Impl(Options options_in, const Clock& clock, Handler handler_in)
    : options(std::move(options_in)), handler(std::move(handler_in)) {
  const auto count =
      options.threads > 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < count; ++i) loops.push_back(std::make_unique<Loop>(options, clock, handler));
  acceptor.emplace(loops.front()->context());
  accept_pause.emplace(loops.front()->context());
  listen();
  accept();
  start_threads();
}

void Server::Impl::listen() {
  ErrorCode ec;
  const auto address = asio::ip::make_address(options.address, ec);
  const Tcp::endpoint endpoint(address, options.port);
  if (!ec) acceptor->open(endpoint.protocol(), ec);
  if (!ec) acceptor->set_option(Acceptor::reuse_address(true), ec);
  if (!ec) acceptor->bind(endpoint, ec);
  if (!ec) acceptor->listen(Acceptor::max_listen_connections, ec);
  if (!ec) port = acceptor->local_endpoint(ec).port();
  if (ec) {
    throw internal_error(
        fmt::format("Cannot listen on {} port {}: {}.", options.address, options.port, ec.message()));
  }
}

void Server::Impl::accept() {
  auto& loop = least_loaded();
  acceptor->async_accept(loop.context(), [this, &loop](const ErrorCode& ec, Socket socket) {
    on_accept(ec, loop, std::move(socket));
  });
}

void Server::Impl::on_accept(const ErrorCode& ec, Loop& loop, Socket socket) {
  if (!acceptor->is_open()) return;
  if (ec) {
    log::warning("Accepting an HTTP connection failed: {}", ec.message());
    accept_pause->expires_after(kAcceptPause);
    accept_pause->async_wait([this](const ErrorCode& cancelled) {
      if (!cancelled) accept();
    });
    return;
  }
  if (connections() >= options.max_connections) {
    refuse(std::move(socket));
  } else {
    loop.expect_connection();
    asio::post(loop.context(),
               [&loop, socket = std::move(socket)]() mutable { loop.adopt(std::move(socket)); });
  }
  accept();
}

// Best effort: does not wait until the socket is writable.
void Server::Impl::refuse(Socket socket) const {
  ErrorCode ec;
  socket.non_blocking(true, ec);
  socket.write_some(asio::buffer(refusal), ec);
  socket.shutdown(Socket::shutdown_both, ec);
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

void Server::Impl::stop() {
  std::call_once(stopped, [this] {
    asio::post(loops.front()->context(), [this] {
      ErrorCode ec;
      acceptor->close(ec);
      accept_pause->cancel();
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

std::uint16_t Server::port() const { return impl_->port; }
std::size_t Server::connections() const { return impl_->connections(); }
void Server::stop() { impl_->stop(); }

}  // namespace divan::http
