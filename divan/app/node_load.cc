#include "divan/app/node_load.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace divan::app {

NodeUse with_process_use(NodeUse use) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  use.cpu_seconds = seconds(own.ru_utime) + seconds(own.ru_stime);
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  use.memory_bytes = resident * sysconf(_SC_PAGESIZE);
  return use;
}

std::string NodeLoad::report(const NodeUse& use) {
  const MonotonicTime now = clock_.now();
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - at_).count());
  const auto rate = [&](auto so_far, auto before) { return static_cast<double>(so_far - before) / seconds; };
  std::string report = fmt::format(
      R"({{"cpu_cores":{:.2f},"javascript_processes":{:.2f},"requests_per_second":{:.1f},"builds":{},"memory_bytes":{}}})",
      rate(use.cpu_seconds, before_.cpu_seconds), rate(use.javascript_seconds, before_.javascript_seconds),
      rate(use.requests, before_.requests), use.builds, use.memory_bytes);
  at_ = now;
  before_ = use;
  return report;
}

}  // namespace divan::app
