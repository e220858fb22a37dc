#include "divan/app/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "divan/app/options.h"
#include "divan/app/service_manager.h"
#include "divan/app/settings.h"
#include "divan/app/store.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/http/tls.h"

namespace divan::app {
namespace {

// While an io thread is blocked for longer, no watchdog messages are sent.
constexpr std::chrono::milliseconds kMaxBlocked{10'000};

// SIGTERM and SIGINT, and requests to restart. A running server is stopped in order. A server that is still
// starting, which may wait long for its store, ends at once; so does one that is stopping, at the second
// signal. Nothing that was acknowledged is lost.
class StopSignals {
 public:
  // Must be constructed before other threads: signals are delivered to the waiting thread only if all others
  // block them.
  StopSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    // Not joined: if the start fails, there is no signal to wait for.
    std::thread([signals, phase = phase_] {
      int number = 0;
      sigwait(&signals, &number);
      Phase expected = Phase::running;
      if (phase->compare_exchange_strong(expected, Phase::stopping) ||
          (expected == Phase::restarting && phase->compare_exchange_strong(expected, Phase::stopping))) {
        phase->notify_one();
        sigwait(&signals, &number);
      }
      signal(number, SIG_DFL);  // shells start background processes with SIGINT ignored
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      raise(number);
      _exit(128 + number);  // in the first process of a container, signals have no default action
    }).detach();
  }

  void server_has_started() { *phase_ = Phase::running; }
  void wait() { phase_->wait(Phase::running); }

  /// Makes wait() return, unless a signal has done so already. Throws service_unavailable (503) before
  /// server_has_started().
  void restart() {
    Phase expected = Phase::running;
    if (phase_->compare_exchange_strong(expected, Phase::restarting)) return phase_->notify_one();
    if (expected == Phase::starting) throw Error(503, "service_unavailable", "The server is still starting.");
  }
  /// False if a signal came after restart().
  bool restarts() const { return *phase_ == Phase::restarting; }

 private:
  enum class Phase { starting, running, stopping, restarting };
  std::shared_ptr<std::atomic<Phase>> phase_ = std::make_shared<std::atomic<Phase>>(Phase::starting);
};

// Each connection needs a file descriptor, and many systems limit a process to 1,024 unless it raises the
// limit.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) log::warning("Cannot raise the limit of open files.");
}

int fail(const std::string& reason) {
  std::fprintf(stderr, "divan: %s\n", reason.c_str());
  return 1;
}

// Reads all sources of settings.
void read_settings(Config& config, const ServeOptions& options, const char* const* environment) {
  set_defaults(config);
  if (!options.config_file.empty()) load_settings_file(config, options.config_file);
  load_changes(config, options.server.data_dir + "/local.ini");
  load_environment(config, environment);
  for (const auto& [key, value] : options.chttpd) config.override_with("chttpd", key, value);
  if (!options.store.empty()) config.override_with("divan", "store", options.store);
  if (!options.fauxton.empty()) config.override_with("divan", "fauxton", options.fauxton);
  if (!options.durability.empty()) config.override_with("divan", "durability", options.durability);
  check_all_settings(config);
}

void reload_settings(Config& config, const ServeOptions& options, const char* const* environment) {
  Config::Names kept;
  try {
    kept = config.reload([&](Config& fresh) { read_settings(fresh, options, environment); }, is_live);
  } catch (const Error& error) { throw bad_request(error.reason()); }
  for (const auto& [section, key] : kept)
    log::warning("Setting [{}] {} has changed, but is only read at the start.", section, key);
}

// Throws bad_request if the server would not start again: then it had better go on.
void check_restart(const std::string& program, const ServeOptions& options, const char* const* environment) {
  if (::access(program.c_str(), X_OK) != 0)
    throw bad_request(fmt::format("Cannot restart {}: {}.", program, std::strerror(errno)));
  try {
    Config fresh;
    read_settings(fresh, options, environment);
    if (const auto tls = http_options(fresh).tls) http::TlsContext{*tls};
  } catch (const Error& error) { throw bad_request("Cannot restart: " + error.reason()); }
}

void check_changes(Config& config) {
  config.on_change([&config](const std::string& section, const std::string& key) {
    check_change(config, section, key);
    if (section == "log" && key == "level")
      log::set_level(log::parse_level(config.get("log", "level", "info")));
  });
}

// Replaces this process by a new one of the same program, which may have been updated on the disk, with the
// same arguments. Its id stays the same, so a service manager or a container sees no end of the service.
// Returns the exit status of a failure.
int execute_again(const std::string& program, const char* const* environment) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  // Libraries may have opened files that would stay open.
  if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0)
    log::warning("Cannot close all files before the restart: {}", std::strerror(errno));
  execve(program.c_str(), pointers.data(), const_cast<char* const*>(environment));
  return fail(fmt::format("cannot restart {}: {}", program, std::strerror(errno)));
}

void announce(const Server& server, const ServeOptions& options, const std::string& store) {
  std::string activity;
  if (!options.server.serves) activity = " runs background work";
  if (options.server.listens)
    activity += fmt::format("{} listens on {}", activity.empty() ? "" : " and", server.url());
  if (const auto tls = server.tls_url(); !tls.empty()) activity += " and " + tls;
  fmt::print("Divan {}{} (data in {})\n", DIVAN_VERSION, activity,
             is_shared(store) ? store : options.server.data_dir);
  // The password itself would be kept by a journal, which more users can read.
  if (!server.new_admin_file().empty())
    fmt::print("The administrator's name and password are in {}\n", server.new_admin_file());
  std::fflush(stdout);
}

// Returns when the server has stopped.
void run_server(Config& config, const std::string& program, const ServeOptions& options,
                const char* const* environment, StopSignals& signals) {
  const auto restart = [&] {
    check_restart(program, options, environment);
    signals.restart();
  };
  Server server(config, options.server, {.restart = restart, .reload_settings = [&] {
                                           reload_settings(config, options, environment);
                                         }});
  signals.server_has_started();
  announce(server, options, config.get("divan", "store", kEmbedded));
  const SystemClock clock;
  ServiceManager manager(clock);
  manager.ready(server.url().empty() ? "Running" : "Listening on " + server.url(),
                [&server] { return server.responds(kMaxBlocked); });
  signals.wait();
  const bool restarts = signals.restarts();
  log::info("{}", restarts ? "Restarting." : "Stopping.");
  restarts ? manager.restarting() : manager.stopping();
  server.stop();
}

}  // namespace

int serve(const ServeOptions& options, const char* const* environment) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  StopSignals signals;
  signal(SIGPIPE, SIG_IGN);
  raise_file_limit();
  Config config;
  try {
    read_settings(config, options, environment);
    check_changes(config);
    log::configure(log::parse_level(config.get("log", "level", "info")), config.get("log", "file", ""));
    const std::string store = config.get("divan", "store", kEmbedded);
    if (!options.server.serves && !is_shared(store)) {
      throw bad_request(
          "divan worker requires a shared store, --store fdb:CLUSTER_FILE; a store in a data directory "
          "can be used by one process only.");
    }
    run_server(config, program, options, environment, signals);
  } catch (const Error& error) { return fail(error.reason()); } catch (const kv::Error& error) {
    return fail(error.reason());
  }
  return signals.restarts() ? execute_again(program, environment) : 0;
}

}  // namespace divan::app
