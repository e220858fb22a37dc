// A sequence, as in `since`, is refused, or names a place in the changes that its canonical form names, too.
#include "divan/docs/sequence.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  divan::fuzz::answers(400, [&] {
    const auto stamp = divan::docs::parse_sequence(divan::fuzz::text_of(data, size));
    divan::fuzz::check(divan::docs::parse_sequence(divan::docs::to_sequence(stamp)) == stamp);
  });
  return 0;
}
