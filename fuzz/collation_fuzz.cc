// Two JSON texts, with a zero byte between them: their encodings sort as the reference sorts the values,
// and neither is a prefix of the other.
#include <cstdlib>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/collation/collation.h"
#include "divan/collation/reference.h"

namespace {

namespace collation = divan::collation;
using collation::reference::sign;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_pair(const std::string& a, const std::string& b, collation::Collation collation) {
  const std::string left = collation::encode_key(a, collation);
  const std::string right = collation::encode_key(b, collation);
  check(left == right || (!left.starts_with(right) && !right.starts_with(left)));
  check(left < collation::kAfterAllKeys);
  // A level beyond the last element gives the whole key, without what follows.
  check(collation::group_prefix(left + right, a.size() + 1, collation) == left);
  const std::string nested = collation::encode_key('[' + a + ']', collation);
  const std::string other = collation::encode_key('[' + b + ']', collation);
  check(sign(nested.compare(other)) == sign(left.compare(right)));
  if (collation == collation::Collation::unicode) {
    check(sign(left.compare(right)) == sign(collation::reference::compare(a, b)));
  }
}

// Encodings are read from rows: invalid bytes must be errors.
void check_hostile(std::string_view bytes) {
  try {
    collation::group_prefix(bytes, 2);
  } catch (const divan::Error&) {}
  try {
    collation::encode_key(bytes);
  } catch (const divan::Error&) {}
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_hostile(bytes);
  const std::size_t zero = std::min(bytes.find('\0'), size);
  std::string a;
  std::string b;
  try {
    a = divan::json::compact(bytes.substr(0, zero));
    b = zero < size ? divan::json::compact(bytes.substr(zero + 1)) : a;
  } catch (const divan::Error&) { return 0; }
  // The reference takes time that grows with the square of the depth.
  if (a.size() + b.size() > 4096) return 0;
  check_pair(a, b, collation::Collation::unicode);
  check_pair(a, b, collation::Collation::raw);
  return 0;
}
