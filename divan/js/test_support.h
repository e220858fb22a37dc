// Shared by this module's tests: pools of real processes, and functions that inspect those processes.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <future>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "divan/base/clock.h"
#include "divan/base/error.h"
#include "divan/js/pool.h"

namespace divan::js {

// Generous limits, since sanitizers make processes large and slow.
inline PoolOptions test_options(std::size_t processes = 1) {
  PoolOptions options;
  options.binary = DIVAN_JS_BINARY;
  options.processes = processes;
  options.reserved = 0;  // has tests of its own
  options.recycle = std::size_t{4} << 30;
  options.margin = std::chrono::seconds(60);
  options.reduce_limit.mode = ReduceLimit::Mode::off;  // has tests of its own
  return options;
}

// A program whose id is its source.
inline Program program_of(const std::vector<std::string>& sources) {
  Program program;
  for (const auto& source : sources) {
    program.functions.push_back({"f" + std::to_string(program.functions.size()), source});
    program.id += source + '\n';
  }
  return program;
}

inline MapResult map_all(Pool& pool, const std::vector<std::string>& sources,
                         const std::vector<std::string_view>& documents, const Limits& limits = {}) {
  return pool.map(program_of(sources), documents, limits);
}

// Formats the rows of a function as "key=value ...", or its failure as "!message".
inline std::string shown(const MapResult& result, std::size_t document, std::size_t function) {
  if (const auto* failure = result.failure(document, function)) return "!" + failure->message;
  std::string text;
  for (const auto& [key, value] : result.emitted(document, function)) {
    text.append(text.empty() ? "" : " ").append(key).append("=").append(value);
  }
  return text;
}

// The rows of one function for one document, in the same form.
inline std::string map_one(Pool& pool, const std::string& source, std::string_view document = "{}",
                           const Limits& limits = {}) {
  return shown(map_all(pool, {source}, {document}, limits), 0, 0);
}

inline const std::string kEmitN = "doc => emit(doc.n)";

inline Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) { return error; }
  return {500, "none", "nothing was thrown"};
}

inline std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The field `name` of a process's status file.
inline std::string status_field(pid_t pid, const std::string& name) {
  std::istringstream status(file_text("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return {};
}

inline std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const open = opendir(directory.c_str());
  if (open == nullptr) return names;
  while (const auto* entry = readdir(open)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(open);
  return names;
}

// This process's children, including zombies.
inline std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& name : entries("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (status_field(pid, "PPid") == std::to_string(getpid())) found.push_back(pid);
  }
  return found;
}

// Returns true if the process is a zombie: all its threads have ended and it was not reaped.
inline bool is_zombie(pid_t pid) {
  return status_field(pid, "State").starts_with("Z") &&
         entries("/proc/" + std::to_string(pid) + "/task").size() == 1;
}

// Waits for a condition; returns false if it is still false after a very long time.
inline bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 60'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// A call of a pool without busy processes, whose process has got SIGSTOP: the call ends after resume(). Not
// thread-safe.
class HeldCall {
 public:
  explicit HeldCall(Pool& pool, const std::string& source = kEmitN) {
    map_one(pool, kEmitN);
    const auto processes = children();
    if (processes.size() != 1) throw std::logic_error("the pool has not exactly one process");
    process_ = processes[0];
    kill(process_, SIGSTOP);
    rows_ = std::async(std::launch::async, [&pool, source] { return map_one(pool, source, R"({"n":1})"); });
    if (!eventually([&] { return pool.stats().busy == 1; })) throw std::logic_error("the call has not begun");
  }
  ~HeldCall() {
    if (rows_.valid()) kill(process_, SIGCONT);
  }
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;

  pid_t process() const { return process_; }
  // Returns the rows as map_one(). To be called once.
  std::string resume() {
    kill(process_, SIGCONT);
    return rows_.get();
  }

 private:
  pid_t process_;
  std::future<std::string> rows_;
};

}  // namespace divan::js
