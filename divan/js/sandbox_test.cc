// divan-js without the server: its restrictions, and its reaction to invalid requests.
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <filesystem>
#include <set>
#include <utility>

#include "divan/base/precompiled_test.h"
#include "divan/js/requests.h"
#include "divan/js/responses.h"
#include "divan/js/sandbox/lockdown.h"
#include "divan/js/test_support.h"

namespace divan::js {
namespace {

pid_t spawn(const std::vector<std::string>& command, int standard_io) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (standard_io >= 0) {
    posix_spawn_file_actions_adddup2(&actions, standard_io, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, standard_io, STDOUT_FILENO);
  }
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

int wait_status(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

// The wait status of the probe, which is locked down like divan-js, for an attempt.
int probe(const std::string& attempt) {
  const auto binary = std::filesystem::path(DIVAN_JS_BINARY).parent_path() / "divan-js-probe";
  return wait_status(spawn({binary, attempt}, -1));
}

TEST(JsSandbox, AllowedCallsSucceed) {
  for (const std::string attempt : {"nothing", "memory", "name-thread"}) {
    const int status = probe(attempt);
    EXPECT_TRUE(WIFEXITED(status)) << attempt;
    EXPECT_EQ(WEXITSTATUS(status), 0) << attempt;
  }
}

TEST(JsSandbox, OpeningFilesFails) {
  if (sandbox::kSanitized) GTEST_SKIP() << "no filter under a sanitizer";
  for (const std::string attempt : {"open", "create"}) {
    const int status = probe(attempt);
    EXPECT_TRUE(WIFEXITED(status)) << attempt;
    EXPECT_EQ(WEXITSTATUS(status), EPERM) << attempt;
  }
}

TEST(JsSandbox, SocketsProcessesAndSignalsKill) {
  if (sandbox::kSanitized) GTEST_SKIP() << "no filter under a sanitizer";
  for (const std::string attempt :
       {"socket", "fork", "thread", "exec", "kill", "ptrace", "unlink", "read", "shared-memory"}) {
    const int status = probe(attempt);
    EXPECT_TRUE(WIFSIGNALED(status)) << attempt;
    EXPECT_EQ(WTERMSIG(status), SIGSYS) << attempt;
  }
}

#ifdef __x86_64__
TEST(JsSandbox, CallNumbersOfAnotherArchitectureKill) {
  if (sandbox::kSanitized) GTEST_SKIP() << "no filter under a sanitizer";
  EXPECT_EQ(WTERMSIG(probe("x32")), SIGSYS);
  // A kernel without support for the other architecture kills the process with SIGSEGV.
  EXPECT_THAT(WTERMSIG(probe("i386")), testing::AnyOf(SIGSYS, SIGSEGV));
}
#endif

// All system calls, and numbers that may be assigned later: a call that is not listed here must kill the
// process. Calls that are allowed with certain arguments only are attempted with others.
TEST(JsSandbox, CallsThatAreNotListedKill) {
  if (sandbox::kSanitized) GTEST_SKIP() << "no filter under a sanitizer";
  const std::set<int> allowed = {
      SYS_brk,
      SYS_mprotect,
      SYS_mremap,
      SYS_munmap,
      SYS_madvise,
      SYS_membarrier,
      SYS_futex,
      SYS_sched_yield,
      SYS_clock_gettime,
      SYS_clock_getres,
      SYS_clock_nanosleep,
      SYS_gettimeofday,
      SYS_nanosleep,
      SYS_getrandom,
      SYS_rt_sigaction,
      SYS_rt_sigprocmask,
      SYS_rt_sigreturn,
      SYS_sigaltstack,
      SYS_getpid,
      SYS_gettid,
      SYS_restart_syscall,
      SYS_ppoll,
      SYS_set_robust_list,
      SYS_rseq,
      SYS_close,
      SYS_exit,
      SYS_exit_group,
#ifdef SYS_time
      SYS_time,
      SYS_poll,
#endif
  };
  const std::set<int> refused = {
      SYS_openat,     SYS_faccessat, SYS_faccessat2, SYS_newfstatat, SYS_statx,     SYS_fstat,
      SYS_readlinkat, SYS_getcwd,    SYS_ioctl,      SYS_fcntl,      SYS_lseek,     SYS_uname,
      SYS_sysinfo,    SYS_prctl,     SYS_prlimit64,  SYS_getrlimit,  SYS_getrusage, SYS_sched_getaffinity,
#ifdef SYS_open
      SYS_open,       SYS_access,    SYS_stat,       SYS_lstat,      SYS_readlink,
#endif
  };
  // uretprobe and uprobe: newer kernels exempt them from filters, and they have no effect outside of their
  // traps.
  const std::set<int> past_filters = {335, 336};
  constexpr int kNumbers = 600;
  for (int number = 0; number < kNumbers; ++number) {
    if (allowed.contains(number) || past_filters.contains(number)) continue;
    const int status = probe(std::to_string(number));
    if (refused.contains(number)) {
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == EPERM) << number << ": " << status;
    } else {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << number << ": " << status;
    }
  }
}

TEST(JsSandbox, TheFilterIsActiveOnEveryThread) {
  SystemClock clock;
  Pool pool(test_options(), clock);
  EXPECT_EQ(map_one(pool, "doc => emit(1)"), "1=null");
  const auto child = children();
  ASSERT_EQ(child.size(), 1u);
  EXPECT_EQ(status_field(child[0], "NoNewPrivs"), "1");
  if (sandbox::kSanitized) GTEST_SKIP() << "no filter under a sanitizer";
  const auto tasks = "/proc/" + std::to_string(child[0]) + "/task/";
  const auto threads = entries(tasks);
  EXPECT_GT(threads.size(), 1u);
  for (const auto& thread : threads) {
    EXPECT_THAT(file_text(tasks + thread + "/status"), testing::HasSubstr("\nSeccomp:\t2\n")) << thread;
  }
  const auto limits = file_text("/proc/" + std::to_string(child[0]) + "/limits");
  EXPECT_THAT(limits, testing::ContainsRegex("Max data size +268435456 +268435456"));
  EXPECT_THAT(limits, testing::ContainsRegex("Max core file size +0 +0"));
  EXPECT_THAT(limits, testing::ContainsRegex("Max open files +3 +3"));
  EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(child[0]) + "/cwd"), "/");
}

// A divan-js process on whose standard input and output the test writes and reads, started in another time
// zone than UTC.
class JsSandboxProcess : public testing::Test {
 protected:
  JsSandboxProcess() {
    setenv("TZ", "America/New_York", 1);
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = ends[0];
    pid_ = spawn({DIVAN_JS_BINARY, std::to_string(std::size_t{256} << 20)}, ends[1]);
    unsetenv("TZ");
    close(ends[1]);
    EXPECT_EQ(parse_hello(receive_frame()), std::optional(!sandbox::kSanitized));
  }
  ~JsSandboxProcess() override {
    hang_up();
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait_status(pid_);
  }

  void send(const std::string& bytes) const {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  std::string receive(std::size_t size) const {
    std::string bytes(size, '\0');
    EXPECT_EQ(recv(socket_, bytes.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return bytes;
  }
  std::string receive_frame() { return receive(protocol::read_u32_le(receive(4).data())); }
  void hang_up() {
    if (socket_ >= 0) close(std::exchange(socket_, -1));
  }
  // Returns the exit status; fails if the process does not exit.
  int status_of_end() {
    int status = 0;
    EXPECT_TRUE(eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }));
    pid_ = -1;
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

  int socket_ = -1;
  pid_t pid_ = -1;
};

Limits an_hour() {
  Limits limits;
  limits.invocation = limits.batch = std::chrono::hours(1);
  return limits;
}

TEST_F(JsSandboxProcess, TimeIsUtcWhereverItRuns) {
  const std::vector<Function> functions = {
      {"f", "doc => emit(new Date(0).getTimezoneOffset(), `${new Date(0)}`)"}};
  send(load_request(0, functions, an_hour()));
  receive_frame();
  const std::vector<std::string_view> documents = {"{}"};
  send(map_request(0, documents, an_hour()));
  Log log;
  const auto result = parse_map_response(receive_frame(), 1, 1, log);
  ASSERT_TRUE(result);
  EXPECT_EQ(shown(*result, 0, 0), "0=\"Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)\"");
}

TEST_F(JsSandboxProcess, ExitsWhenTheServerHasEnded) {
  hang_up();
  EXPECT_EQ(status_of_end(), 0);
}

TEST_F(JsSandboxProcess, ExitsOnATruncatedRequest) {
  const std::vector<Function> functions = {{"f", "doc => 1"}};
  const auto request = load_request(0, functions, an_hour());
  send(request.substr(0, request.size() - 1));
  hang_up();
  EXPECT_EQ(status_of_end(), 0);
}

TEST_F(JsSandboxProcess, ExitsDuringAScriptWhenTheServerHasEnded) {
  const std::vector<Function> functions = {{"f", "doc => { for (;;); }"}};
  send(load_request(3, functions, an_hour()));
  receive_frame();
  const std::vector<std::string_view> documents = {"{}"};
  send(map_request(3, documents, an_hour()));
  ASSERT_TRUE(eventually([&] { return status_field(pid_, "State").starts_with("R"); }));
  hang_up();
  EXPECT_EQ(status_of_end(), 0);
}

TEST_F(JsSandboxProcess, DoesNotServeAMalformedRequest) {
  send(std::string("\x03\0\0\0abc", 7));
  EXPECT_EQ(status_of_end(), protocol::kExitProtocol);
}

TEST_F(JsSandboxProcess, DoesNotServeARequestThatIsTooLong) {
  send("\xff\xff\xff\xff");
  EXPECT_EQ(status_of_end(), protocol::kExitProtocol);
}

TEST_F(JsSandboxProcess, DoesNotServeAnEmptySlot) {
  const std::vector<std::string_view> documents = {"{}"};
  send(map_request(5, documents, an_hour()));
  EXPECT_EQ(status_of_end(), protocol::kExitProtocol);
}

TEST_F(JsSandboxProcess, ReducesOnlyWithAProgramOfOneFunction) {
  const std::vector<Function> functions = {{"f", "doc => 1"}, {"g", "doc => 2"}};
  send(load_request(0, functions, an_hour()));
  receive_frame();
  const std::vector<ReduceGroup> groups(1);
  send(reduce_request(0, false, groups, an_hour()));
  EXPECT_EQ(status_of_end(), protocol::kExitProtocol);
}

TEST(JsSandbox, RequiresItsMemoryLimit) {
  for (const auto& command : std::vector<std::vector<std::string>>{
           {DIVAN_JS_BINARY}, {DIVAN_JS_BINARY, ""}, {DIVAN_JS_BINARY, "12x"}, {DIVAN_JS_BINARY, "1", "2"}}) {
    const int silent = open("/dev/null", O_RDWR);
    const int status = wait_status(spawn(command, silent));
    close(silent);
    EXPECT_EQ(WEXITSTATUS(status), protocol::kExitSetUp);
  }
}

}  // namespace
}  // namespace divan::js
