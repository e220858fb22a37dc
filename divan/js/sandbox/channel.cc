#include "divan/js/sandbox/channel.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "divan/js/protocol.h"

namespace divan::js::sandbox {
namespace {

// Larger buffers are freed after each request.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

void read_exactly(char* bytes, std::size_t size) {
  while (size > 0) {
    const auto got = read(STDIN_FILENO, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(0);
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
}

void write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto put = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) _exit(0);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

}  // namespace

void begin_frame(std::string& frame) {
  if (frame.capacity() > kKeptBytes) frame = {};
  frame.assign(4, '\0');
}

void write_frame(std::string& frame) {
  protocol::finish_frame(frame);
  write_all(frame);
}

void read_frame(std::string& content) {
  char length[4];
  read_exactly(length, sizeof length);
  const auto size = protocol::read_u32_le(length);
  if (size > protocol::kMaxFrame) _exit(protocol::kExitProtocol);
  if (content.capacity() > kKeptBytes) content = {};
  content.resize(size);
  read_exactly(content.data(), size);
}

}  // namespace divan::js::sandbox
