#include "divan/js/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/js/responses.h"

namespace divan::js {
namespace {

constexpr Duration kStartLimit = std::chrono::seconds(20);
// The niceness of background processes relative to the server: about a third of its share of a busy
// processor.
constexpr int kNiceness = 5;
// A response's buffer grows by at most this much before the bytes arrive, since the child's length field is
// untrusted.
constexpr std::size_t kMaxUnverifiedBytes = std::size_t{1} << 20;

Error cannot_start(const std::string& binary, const std::string& why) {
  return {500, "os_process_error", fmt::format("Cannot start {}: {}", binary, why)};
}

// The library path and the sanitizers' options only: the server's environment may contain secrets.
std::vector<char*> child_environment() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable(*entry);
    const auto name = variable.substr(0, variable.find('='));
    if (name == "LD_LIBRARY_PATH" || name.ends_with("SAN_OPTIONS")) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

pid_t spawn(const std::string& binary, std::size_t memory_bytes, int standard_io) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, standard_io, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, standard_io, STDOUT_FILENO);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  auto name = binary;
  auto memory = std::to_string(memory_bytes);
  char* const arguments[] = {name.data(), memory.data(), nullptr};
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, name.c_str(), &actions, &attributes, arguments, child_environment().data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw cannot_start(binary, std::strerror(error));
  return pid;
}

Failure describe_end(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* name = sigabbrev_np(signal);
    return {FailureKind::crashed, fmt::format("the JavaScript process was killed by SIG{}",
                                              name != nullptr ? name : std::to_string(signal))};
  }
  return {FailureKind::crashed,
          fmt::format("the JavaScript process ended with status {}", WEXITSTATUS(status))};
}

}  // namespace

Process::Process(const std::string& binary, std::size_t memory_bytes, int stop_fd,
                 const std::stop_token& stop)
    : memory_limit_(memory_bytes), stop_fd_(stop_fd) {
  try {
    start(binary, memory_bytes, stop);
  } catch (...) {
    end();
    throw;
  }
}

Process::~Process() { end(); }

void Process::start(const std::string& binary, std::size_t memory_bytes, const std::stop_token& stop) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw cannot_start(binary, std::strerror(errno));
  }
  socket_ = ends[0];
  try {
    pid_ = spawn(binary, memory_bytes, ends[1]);
  } catch (...) {
    close(ends[1]);
    throw;
  }
  close(ends[1]);
  statm_ = open(fmt::format("/proc/{}/statm", pid_).c_str(), O_RDONLY | O_CLOEXEC);
  std::optional<std::string> hello;
  {
    const std::stop_callback hang_up(stop, [this] { shutdown(socket_, SHUT_RDWR); });
    hello = receive_frame(std::chrono::steady_clock::now() + kStartLimit);
  }
  const auto locked = hello ? parse_hello(*hello) : std::nullopt;
  if (!locked) {
    end();
    throw cannot_start(binary, hello ? "it uses another version of the protocol" : failure_.message);
  }
  locked_ = *locked;
}

std::optional<std::string> Process::call(std::string_view frame, Duration limit,
                                         const std::stop_token& stop) {
  DIVAN_CHECK(socket_ >= 0, "a request to a process that has ended");
  DIVAN_CHECK(frame.size() >= 4 && frame.size() - 4 <= protocol::kMaxFrame &&
                  protocol::read_u32_le(frame.data()) == frame.size() - 4,
              "a frame of {} bytes", frame.size());
  const auto deadline = std::chrono::steady_clock::now() + limit;
  {
    const std::stop_callback hang_up(stop, [this] { shutdown(socket_, SHUT_RDWR); });
    if (send_all(frame, deadline)) {
      if (auto response = receive_frame(deadline)) return response;
    }
  }
  end();
  return std::nullopt;
}

bool Process::send_all(std::string_view bytes, MonotonicTime deadline) {
  while (!bytes.empty()) {
    const auto sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool Process::receive_all(char* bytes, std::size_t size, MonotonicTime deadline) {
  while (size > 0) {
    const auto got = recv(socket_, bytes, size, MSG_DONTWAIT);
    if (got > 0) {
      bytes += got;
      size -= static_cast<std::size_t>(got);
    } else if (got < 0 && errno == EAGAIN) {
      if (!wait_for(POLLIN, deadline)) return false;
    } else if (got == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> Process::receive_frame(MonotonicTime deadline) {
  char length[4];
  if (!receive_all(length, sizeof length, deadline)) return std::nullopt;
  const std::size_t size = protocol::read_u32_le(length);
  if (size > protocol::kMaxFrame) return std::nullopt;
  std::string frame;
  while (frame.size() < size) {
    const auto had = frame.size();
    frame.resize(std::min(size, had + kMaxUnverifiedBytes));
    DIVAN_CHECK(frame.size() > had && frame.size() <= size, "{} bytes of a frame of {}", frame.size(), size);
    if (!receive_all(frame.data() + had, frame.size() - had, deadline)) return std::nullopt;
  }
  return frame;
}

bool Process::wait_for(short events, MonotonicTime deadline) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd fds[] = {{socket_, events, 0}, {stop_fd_, POLLIN, 0}};
    const auto limit = std::clamp<std::int64_t>(left.count(), 0, 1 << 30);
    const int ready = poll(fds, 2, static_cast<int>(limit));
    if (ready > 0 && fds[1].revents == 0) return true;
    if (ready < 0 && errno == EINTR) continue;
    late_ = true;
    return false;
  }
}

// Sets the niceness of the process's first thread only, which runs the scripts.
void Process::make_nice() {
  DIVAN_CHECK(pid_ > 0, "the process has not been started");
  setpriority(PRIO_PROCESS, static_cast<id_t>(pid_), getpriority(PRIO_PROCESS, 0) + kNiceness);
  nice_ = true;
}

bool Process::ended() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_.has_value();
}

void Process::end() {
  // A process that has closed its socket or is exiting keeps its exit status: the signal is too late to
  // change it, but ensures that the wait is short.
  if (pid_ > 0 && !status_) {
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    status_ = status;
    failure_ = late_ ? Failure{FailureKind::timeout, "the JavaScript process did not respond in time"}
                     : describe_end(status);
  }
  if (socket_ >= 0) close(socket_);
  if (statm_ >= 0) close(statm_);
  socket_ = statm_ = -1;
}

std::size_t Process::resident_bytes() const {
  char text[128];
  const auto size = pread(statm_, text, sizeof text, 0);
  if (size <= 0) return 0;
  const char* const end = text + size;
  const char* const resident = std::find(static_cast<const char*>(text), end, ' ');
  std::size_t pages = 0;
  if (resident != end) std::from_chars(resident + 1, end, pages);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::optional<std::uint32_t> Process::find(std::string_view program_key) {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].used == 0 || slots_[i].program_key != program_key) continue;
    slots_[i].used = ++uses_;
    return i;
  }
  return std::nullopt;
}

std::uint32_t Process::empty_slot() {
  const auto oldest = std::min_element(slots_.begin(), slots_.end(),
                                       [](const Slot& a, const Slot& b) { return a.used < b.used; });
  *oldest = {};
  return static_cast<std::uint32_t>(oldest - slots_.begin());
}

void Process::fill(std::uint32_t slot, std::string program_key) {
  DIVAN_CHECK(slot < slots_.size() && slots_[slot].used == 0, "slot {} is not empty", slot);
  slots_[slot] = {std::move(program_key), ++uses_};
}

}  // namespace divan::js
