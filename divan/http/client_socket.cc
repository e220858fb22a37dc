#include "divan/http/client_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "divan/base/error.h"

namespace divan::http {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string error_text(int error) { return std::generic_category().message(error); }

Error connection_failed(std::string_view peer, std::string_view why) {
  return {503, "connection_failed", fmt::format("Cannot connect to {}: {}.", peer, why)};
}

// Returns true if one of `events` occurs in time. A signal restarts the wait.
bool poll_for(int fd, short events, std::chrono::milliseconds timeout) {
  pollfd poll_fd{fd, events, 0};
  int ready = 0;
  do { ready = poll(&poll_fd, 1, static_cast<int>(timeout.count())); } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

Addresses resolve(const std::string& host, std::uint16_t port, std::string_view peer) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) throw connection_failed(peer, gai_strerror(error));
  return {found, freeaddrinfo};
}

// Returns 0, or errno's value on failure.
int connect_within(int fd, const addrinfo& address, std::chrono::milliseconds timeout) {
  if (connect(fd, address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!poll_for(fd, POLLOUT, timeout)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

std::string host_and_port(std::string_view host, std::uint16_t port) {
  if (host.find(':') != std::string_view::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

ClientSocket::ClientSocket(const std::string& host, std::uint16_t port,
                           std::chrono::milliseconds connect_timeout, std::chrono::milliseconds io_timeout)
    : peer_(host_and_port(host, port)), io_timeout_(io_timeout) {
  const auto addresses = resolve(host, port, peer_);
  int error = 0;
  for (const auto* address = addresses.get(); address != nullptr; address = address->ai_next) {
    fd_ = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    error = fd_ < 0 ? errno : connect_within(fd_, *address, connect_timeout);
    if (error == 0) break;
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  if (fd_ < 0) throw connection_failed(peer_, error_text(error));
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

ClientSocket::~ClientSocket() { close(fd_); }

bool ClientSocket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait(POLLOUT);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::optional<std::size_t> ClientSocket::receive(std::span<char> into, bool limited) {
  for (;;) {
    const auto size = recv(fd_, into.data(), into.size(), 0);
    if (size >= 0) return static_cast<std::size_t>(size);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait(POLLIN, limited);
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

bool ClientSocket::readable() const { return poll_for(fd_, POLLIN, std::chrono::milliseconds(0)); }

void ClientSocket::end_output() const { shutdown(fd_, SHUT_WR); }

void ClientSocket::reset_at_close() const {
  const linger at_once{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void ClientSocket::wait(short events, bool limited) {
  constexpr std::chrono::milliseconds kForEver(-1);
  if (poll_for(fd_, events, limited ? io_timeout_ : kForEver)) return;
  throw Error(504, "timeout", fmt::format("No response from {} for {} ms.", peer_, io_timeout_.count()));
}

}  // namespace divan::http
