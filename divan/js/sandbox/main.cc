// divan-js: runs untrusted JavaScript for the server in a sandbox (engine.h, lockdown.h). It uses the
// protocol of ../protocol.h on standard input and output, and exits at the end of its input. Its argument is
// its memory limit in bytes.
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>

#include "divan/js/protocol.h"
#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/lockdown.h"
#include "divan/js/sandbox/server.h"

namespace divan::js::sandbox {
namespace {

// Larger buffers are freed after each request.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

// Exits if the server has closed the connection.
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

void begin_frame(std::string& frame) {
  if (frame.capacity() > kKeptBytes) frame = {};
  frame.assign(4, '\0');
}

void say_hello(bool locked) {
  std::string frame(4, '\0');
  protocol::put_u32(frame, protocol::kVersion);
  protocol::put_u8(frame, locked ? 1 : 0);
  protocol::finish_frame(frame);
  write_all(frame);
}

[[noreturn]] void serve(Server& server) {
  std::string request;
  std::string response;
  for (;;) {
    char length[4];
    read_exactly(length, sizeof length);
    const auto size = protocol::read_u32_le(length);
    if (size > protocol::kMaxFrame) _exit(protocol::kExitProtocol);
    if (request.capacity() > kKeptBytes) request = {};
    request.resize(size);
    read_exactly(request.data(), size);
    begin_frame(response);
    server.handle(request, response);
    protocol::finish_frame(response);
    write_all(response);
  }
}

[[noreturn]] void run(std::size_t memory_bytes) {
  shed_inheritance();
  // The engine's heap gets half: strings, elements of arrays and the buffers here are outside of it.
  static auto& engine = *new Engine(memory_bytes / 2);
  const bool locked = lock_down(memory_bytes);
  static Server server(engine);
  say_hello(locked);
  serve(server);
}

}  // namespace
}  // namespace divan::js::sandbox

int main(int argc, char** argv) {
  std::size_t memory_bytes = 0;
  const std::string_view argument = argc == 2 ? argv[1] : "";
  const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), memory_bytes);
  if (error != std::errc{} || end != argument.data() + argument.size()) {
    std::fputs("usage: divan-js MEMORY_BYTES   (started by divan; uses a binary protocol)\n", stderr);
    return divan::js::protocol::kExitSetUp;
  }
  divan::js::sandbox::run(memory_bytes);
}
