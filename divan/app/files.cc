#include "divan/app/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "divan/base/error.h"

namespace divan::app {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

Error failed(std::string_view action, const std::string& path) {
  return internal_error(fmt::format("Cannot {} {}: {}", action, path, std::strerror(errno)));
}

// Closes an owned descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path) {
  if (path.empty()) throw bad_request("The file's name is empty.");
  if (path == "-") {
    fd_ = STDOUT_FILENO;
    return;
  }
  if (std::filesystem::exists(path_)) throw bad_request(fmt::format("{} already exists.", path));
  // A unique name: another process may be creating the same file.
  std::string part = path + ".part-XXXXXX";
  fd_ = ::mkostemp(part.data(), O_CLOEXEC);
  if (fd_ < 0) throw bad_request(fmt::format("Cannot create {}: {}", path, std::strerror(errno)));
  part_ = std::move(part);
}

NewFile::~NewFile() {
  if (part_.empty() || fd_ < 0) return;
  ::close(fd_);
  ::unlink(part_.c_str());
}

void NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw failed("write to", part_.empty() ? "standard output" : part_);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void NewFile::commit() {
  if (part_.empty()) return;
  if (::fsync(fd_) != 0) throw failed("sync", part_);
  // Another process may have created the file meanwhile; it must not be replaced.
  if (::link(part_.c_str(), path_.c_str()) != 0) {
    if (errno == EEXIST || ::rename(part_.c_str(), path_.c_str()) != 0) throw failed("create", path_);
  } else {
    ::unlink(part_.c_str());
  }
  ::close(fd_);
  fd_ = -1;
  const auto directory = std::filesystem::path(path_).parent_path();
  sync_directory(directory.empty() ? "." : directory.string());
}

void read_file(const std::string& path, const std::function<void(std::string_view, double)>& visit) {
  const Descriptor file(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
    throw bad_request(fmt::format("Cannot read {}: {}", path, std::strerror(errno)));
  const double size = S_ISREG(status.st_mode) ? static_cast<double>(status.st_size) : 0;
  std::vector<char> piece(kPieceBytes);
  double done = 0;
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw bad_request(fmt::format("Cannot read {}: {}", path, std::strerror(errno)));
    if (got == 0) return;
    done += static_cast<double>(got);
    visit({piece.data(), static_cast<std::size_t>(got)}, size > 0 ? done / size : -1);
  }
}

void sync_directory(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) throw failed("sync", path);
}

}  // namespace divan::app
