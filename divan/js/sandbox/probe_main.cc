// Locks itself down like divan-js, and then attempts what its argument names, as a script that has exploited
// the engine would. Exits with 0 if that succeeded and with errno if it failed, unless the filter kills it. A
// numeric argument is the number of a system call, which is attempted with meaningless arguments.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "divan/js/sandbox/lockdown.h"

namespace {

// Returns true if a new process or thread was created, and ends it.
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
    {"shared-memory",
     [] {
       return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
     }},
#ifdef __x86_64__
    // getpid(), which is allowed, with its numbers of two other architectures.
    {"i386",
     [] {
       long result = 20;
       asm volatile("int $0x80" : "+a"(result)::"memory", "r8", "r9", "r10", "r11");
       return result > 0;
     }},
    {"x32", [] { return syscall(0x40000000 + SYS_getpid) > 0; }},
#endif
    {"name-thread", [] { return prctl(PR_SET_NAME, "probe", 0, 0, 0) == 0; }},
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
  const std::string_view name = argc == 2 ? argv[1] : "";
  std::function<bool()> attempt;
  int number = 0;
  if (std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc{}) {
    attempt = [number] { return syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) != -1; };
  } else if (const auto known = kAttempts.find(std::string(name)); known != kAttempts.end()) {
    attempt = known->second;
  } else {
    return 127;
  }
  alarm(60);  // in case an attempt that is not refused blocks
  divan::js::sandbox::shed_inheritance();
  divan::js::sandbox::lock_down(std::size_t{256} << 20);
  errno = 0;
  return attempt() ? 0 : errno;
}
