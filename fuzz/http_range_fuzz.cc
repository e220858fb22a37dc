// A Range field is ignored, refused, or names bytes of the representation, whose length the first byte sets.
#include "divan/http/byte_range.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint64_t length = data[0] == 255 ? UINT64_MAX : data[0];
  divan::fuzz::answers(416, [&] {
    const auto range = divan::http::parse_range(divan::fuzz::text_of(data + 1, size - 1), length);
    if (range) divan::fuzz::check(range->first < range->end && range->end <= length);
  });
  return 0;
}
