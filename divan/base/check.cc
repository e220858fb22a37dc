#include "divan/base/check.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "divan/base/log.h"

namespace divan {
namespace {

// The path within the repository, independent of the directory of the build.
std::string_view source_path(std::string_view file) {
  const std::size_t begin = file.rfind("/divan/");
  return begin == std::string_view::npos ? file : file.substr(begin + 1);
}

}  // namespace

void end_process(const FailedCheck& check, fmt::string_view format, fmt::format_args args) noexcept {
  const std::string line = fmt::format(
      "{}:{}: check failed: {}: {}. Divan {} ends here, since it has found a fault in itself; its "
      "store recovers at the next start. Please report this line.",
      source_path(check.file), check.line, check.condition, fmt::vformat(format, args), DIVAN_VERSION);
  if (log::enabled(log::Level::error)) {
    log::write(log::Level::error, line);
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  std::abort();
}

}  // namespace divan
