#include "divan/base/rng.h"

#include <openssl/rand.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan {

std::string Rng::bytes(std::size_t size) {
  std::string out;
  while (out.size() < size) append_u64(out, next());
  out.resize(size);
  return out;
}

std::string Rng::uuid() { return to_hex(bytes(16)); }

std::uint64_t SystemRng::next() {
  std::uint64_t value;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&value), sizeof value) != 1) {
    throw internal_error("The operating system gave no random numbers.");
  }
  return value;
}

}  // namespace divan
