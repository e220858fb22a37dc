#include "divan/app/node.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "divan/base/error.h"

namespace divan::app {
namespace {

constexpr std::size_t kNameBytes = 32;

}  // namespace

Node::Node(const std::string& data_dir, Rng& rng) {
  const std::string path = data_dir + "/node";
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0) throw internal_error(fmt::format("Cannot open {}: {}", path, std::strerror(errno)));
  std::string read(kNameBytes, '\0');
  bool ok = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
  const bool is_taken = !ok && errno == EWOULDBLOCK;
  if (ok && ::pread(file_, read.data(), kNameBytes, 0) == static_cast<ssize_t>(kNameBytes)) {
    name_ = read;
    return;
  }
  // Written once, before any other process knows the name.
  name_ = rng.uuid();
  ok = ok && ::pwrite(file_, name_.data(), name_.size(), 0) == static_cast<ssize_t>(name_.size()) &&
       ::fsync(file_) == 0;
  if (ok) return;
  const std::string reason = is_taken ? "it is in use by another process." : std::strerror(errno);
  ::close(file_);
  throw internal_error(fmt::format("Data directory {}: {}", data_dir, reason));
}

Node::~Node() { ::close(file_); }

}  // namespace divan::app
