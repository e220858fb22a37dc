// The check of RocksDB's log: whatever bytes come, it ends, and says nothing wrong of a log that is only cut
// off.
#include <cstdlib>

#include "divan/kv/embedded/log_check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view log(reinterpret_cast<const char*>(data), size);
  const auto damage = divan::kv::embedded::find_log_damage(log);
  if (!damage) return 0;
  if (*damage >= size) std::abort();
  if (divan::kv::embedded::find_log_damage(log.substr(0, *damage))) std::abort();
  return 0;
}
