// A compressed body is rejected, or expands to at most the limit, which the first byte sets.
#include "divan/http/gzip.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t limit = std::size_t{data[0]} << 4;
  try {
    const auto bytes = divan::http::gunzip(divan::fuzz::text_of(data + 1, size - 1), limit);
    divan::fuzz::check(bytes.size() <= limit);
  } catch (const divan::Error& error) { divan::fuzz::check(error.status() == 400 || error.status() == 413); }
  return 0;
}
