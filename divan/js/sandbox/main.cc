// divan-js: runs untrusted JavaScript for the server in a sandbox (engine.h, lockdown.h). It uses the
// protocol of ../protocol.h on standard input and output, and exits at the end of its input. Its argument is
// its memory limit in bytes.
#include <charconv>
#include <cstdio>
#include <string>

#include "divan/js/protocol.h"
#include "divan/js/sandbox/channel.h"
#include "divan/js/sandbox/engine.h"
#include "divan/js/sandbox/lockdown.h"
#include "divan/js/sandbox/server.h"

namespace divan::js::sandbox {
namespace {

void say_hello(bool locked) {
  std::string frame;
  begin_frame(frame);
  protocol::put_u32(frame, protocol::kVersion);
  protocol::put_u8(frame, locked ? 1 : 0);
  write_frame(frame);
}

[[noreturn]] void serve(Server& server) {
  std::string request;
  std::string response;
  for (;;) {
    read_frame(request);
    begin_frame(response);
    server.handle(request, response);
    write_frame(response);
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
