#include "divan/app/node_load.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace divan::app {

namespace {

std::int64_t resident_bytes() {
  std::int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

api::DiskSpace disk_space(const std::string& directory) {
  std::error_code error;
  const auto space = std::filesystem::space(directory, error);
  if (error) return {};
  return {static_cast<std::int64_t>(space.capacity), static_cast<std::int64_t>(space.available)};
}

NodeUse with_process_use(NodeUse use) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  use.cpu_seconds = seconds(own.ru_utime) + seconds(own.ru_stime);
  use.memory_bytes = resident_bytes();
  return use;
}

api::NodeUse node_use(Duration uptime, const std::string& data_dir) {
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  api::NodeUse use{.uptime_s = std::chrono::duration_cast<std::chrono::seconds>(uptime).count(),
                   .memory_bytes = resident_bytes(),
                   .context_switches = own.ru_nvcsw + own.ru_nivcsw,
                   .disk = disk_space(data_dir)};
  // Not all kernels have this file; the numbers are 0 then.
  std::ifstream file("/proc/self/io");
  std::string name;
  for (std::int64_t value = 0; file >> name >> value;) {
    if (name == "rchar:") use.read_bytes = value;
    if (name == "wchar:") use.written_bytes = value;
  }
  return use;
}

std::string NodeLoad::report(const NodeUse& use) {
  const MonotonicTime now = clock_.now();
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - at_).count());
  const auto rate = [&](auto so_far, auto before) { return static_cast<double>(so_far - before) / seconds; };
  std::string report = fmt::format(
      R"({{"cpu_cores":{:.2f},"javascript_processes":{:.2f},"requests_per_second":{:.1f},"builds":{},)"
      R"("memory_bytes":{},"disk_total_bytes":{},"disk_free_bytes":{}}})",
      rate(use.cpu_seconds, before_.cpu_seconds), rate(use.javascript_seconds, before_.javascript_seconds),
      rate(use.requests, before_.requests), use.builds, use.memory_bytes, use.disk.total_bytes,
      use.disk.free_bytes);
  at_ = now;
  before_ = use;
  return report;
}

}  // namespace divan::app
