#include "divan/base/rng.h"

#include <openssl/rand.h>

#include <array>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/error.h"

namespace divan {

std::string Rng::bytes(std::size_t size) {
  std::string out;
  while (out.size() < size) append_u64(out, next());
  out.resize(size);
  return out;
}

std::string Rng::uuid() { return to_hex(bytes(16)); }

std::string Rng::uuid_at(std::int64_t wall_ms) {
  constexpr std::uint64_t kVersion = 7, kVariant = 2;
  std::string out;
  append_u64(out, static_cast<std::uint64_t>(wall_ms) << 16 | kVersion << 12 | (next() & 0xfff));
  append_u64(out, kVariant << 62 | next() >> 2);
  return to_hex(out);
}

std::uint64_t SystemRng::next() {
  // A call of RAND_bytes() costs nearly as much for a few bytes as for many, so numbers are fetched in
  // batches.
  struct Buffer {
    std::array<std::uint64_t, 64> numbers;
    std::size_t left = 0;
  };
  thread_local Buffer buffer;
  if (buffer.left == 0) {
    if (RAND_bytes(reinterpret_cast<unsigned char*>(buffer.numbers.data()), sizeof buffer.numbers) != 1)
      throw internal_error("Cannot generate random numbers.");
    buffer.left = buffer.numbers.size();
  }
  DIVAN_CHECK(buffer.left <= buffer.numbers.size(), "{} random numbers are left", buffer.left);
  return buffer.numbers[--buffer.left];
}

}  // namespace divan
