// The check of RocksDB's files: it terminates for arbitrary bytes, and an intact log remains valid if it is
// truncated anywhere.
#include "divan/kv/embedded/log_check.h"
#include "divan/kv/embedded/manifest.h"
#include "divan/kv/error.h"
#include "fuzz/check.h"

namespace {

using divan::kv::Error;
using namespace divan::kv::embedded;

bool well(std::string_view log) {
  try {
    LogChain(0).add("log", log);
    return true;
  } catch (const Error&) { return false; }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (well(bytes)) {
    for (std::size_t cut = 0; cut < size; cut += 1 + size / 50)
      divan::fuzz::check(well(bytes.substr(0, cut)));
  }
  try {
    divan::fuzz::check(read_manifest("manifest", bytes).size <= size);
  } catch (const Error&) {}
  return 0;
}
