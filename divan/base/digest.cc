#include "divan/base/digest.h"

#include <openssl/sha.h>

namespace divan {

std::string sha256(std::string_view bytes, std::size_t size) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  digest.resize(size);
  return digest;
}

}  // namespace divan
