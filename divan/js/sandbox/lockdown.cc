#include "divan/js/sandbox/lockdown.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "divan/js/protocol.h"

#ifdef __SANITIZE_ADDRESS__
// In place of the memory limit, so that what depends on it is tested: large requests for memory fail.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=100";
}
#endif

namespace divan::js::sandbox {
namespace {

void require(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "divan-js: %s: %s\n", what, std::strerror(errno));
  _exit(protocol::kExitSetUp);
}

void limit(__rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  require(setrlimit(resource, &both) == 0, "setrlimit");
}

// Memory, time, locks between threads, signals within the process, and its end.
constexpr int kAllowed[] = {
    SCMP_SYS(brk),
    SCMP_SYS(mprotect),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(madvise),
    SCMP_SYS(membarrier),
    SCMP_SYS(futex),
    SCMP_SYS(sched_yield),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(nanosleep),
    SCMP_SYS(time),
    SCMP_SYS(getrandom),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(close),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
};

// Calls that libraries attempt.
constexpr int kRefused[] = {
    SCMP_SYS(open),       SCMP_SYS(openat),
    SCMP_SYS(access),     SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(stat),
    SCMP_SYS(lstat),      SCMP_SYS(newfstatat),
    SCMP_SYS(statx),      SCMP_SYS(fstat),
    SCMP_SYS(readlink),   SCMP_SYS(readlinkat),
    SCMP_SYS(getcwd),     SCMP_SYS(ioctl),
    SCMP_SYS(fcntl),      SCMP_SYS(lseek),
    SCMP_SYS(uname),      SCMP_SYS(sysinfo),
    SCMP_SYS(prlimit64),  SCMP_SYS(getrlimit),
    SCMP_SYS(getrusage),  SCMP_SYS(sched_getaffinity),
};

void filter_system_calls() {
  const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
  require(filter != nullptr, "seccomp_init");
  const auto add = [&](int result) {
    errno = -result;
    require(result == 0, "seccomp");
  };
  add(seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1));
  // Calls with the numbers of another architecture, which the processor supports as well.
  add(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
  for (const int call : kAllowed) add(seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0));
  for (const int call : kRefused) add(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), call, 0));
  add(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(read), 1, SCMP_A0(SCMP_CMP_EQ, STDIN_FILENO)));
  add(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0(SCMP_CMP_EQ, STDOUT_FILENO)));
  add(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1, SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO)));
  // Private anonymous memory, which RLIMIT_DATA counts.
  add(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                       SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_TYPE | MAP_ANONYMOUS, MAP_PRIVATE | MAP_ANONYMOUS)));
  // The engine's threads set their names when they start, which can be later than this on a busy machine;
  // they crash if that fails.
  add(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)));
  add(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_NE, PR_SET_NAME)));
  // abort() signals its own process.
  const auto self = static_cast<scmp_datum_t>(getpid());
  add(seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, self)));
  add(seccomp_load(filter));
  seccomp_release(filter);
}

}  // namespace

void shed_inheritance() {
  require(close_range(STDERR_FILENO + 1, ~0U, 0) == 0, "close_range");
  require(chdir("/") == 0, "chdir");
  limit(RLIMIT_CORE, 0);
  // Best effort: has no effect if the file cannot be written.
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  [[maybe_unused]] const auto written = write(score, "1000", 4);
  close(score);
}

bool lock_down(std::size_t data_bytes) {
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  if (kSanitized) return false;
  limit(RLIMIT_FSIZE, 0);
  const int nowhere = open("/dev/null", O_WRONLY);
  require(nowhere >= 0 && dup2(nowhere, STDERR_FILENO) == STDERR_FILENO, "/dev/null");
  close(nowhere);
  limit(RLIMIT_NOFILE, STDERR_FILENO + 1);
  limit(RLIMIT_DATA, data_bytes);
  filter_system_calls();
  return true;
}

}  // namespace divan::js::sandbox
