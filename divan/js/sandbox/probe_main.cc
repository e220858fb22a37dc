// Gives up what divan-js gives up and then tries what its argument names, as a script that has broken the
// engine would. Exits with 0 if that worked and with its errno if it was refused; the filter may not let it
// live so long.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "divan/js/sandbox/lockdown.h"

namespace {

// Answers whether a new process or thread came about; ends it where it did.
bool fork_once() {
  const auto child = fork();
  if (child == 0) _exit(0);
  return child > 0;
}

bool start_thread() {
  std::thread([] {}).join();
  return true;
}

bool execute() {
  char name[] = "/bin/true";
  char* const arguments[] = {name, nullptr};
  return execv(name, arguments) == 0;
}

const std::map<std::string, std::function<bool()>> kAttempts = {
    {"nothing", [] { return true; }},
    {"memory",
     [] {
       return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
     }},
    {"open", [] { return open("/etc/passwd", O_RDONLY) >= 0; }},
    {"create", [] { return open("/tmp/divan-js-probe", O_WRONLY | O_CREAT, 0600) >= 0; }},
    {"socket", [] { return socket(AF_INET, SOCK_STREAM, 0) >= 0; }},
    {"fork", fork_once},
    {"thread", start_thread},
    {"exec", execute},
    {"kill", [] { return kill(getppid(), 0) == 0; }},
    {"ptrace", [] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0; }},
    {"unlink", [] { return unlink("/tmp/divan-js-probe") == 0; }},
    {"read",
     [] {
       char byte = 0;
       return read(STDERR_FILENO, &byte, 1) >= 0;
     }},
};

}  // namespace

int main(int argc, char** argv) {
  const auto attempt = kAttempts.find(argc == 2 ? argv[1] : "");
  if (attempt == kAttempts.end()) return 127;
  divan::js::sandbox::shed_inheritance();
  divan::js::sandbox::lock_down(std::size_t{256} << 20);
  errno = 0;
  return attempt->second() ? 0 : errno;
}
