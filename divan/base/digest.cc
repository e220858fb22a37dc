#include "divan/base/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/md5.h>
#include <openssl/sha.h>

#include "divan/base/check.h"

namespace divan {

std::string sha256(std::string_view bytes, std::size_t size) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  digest.resize(size);
  return digest;
}

std::string md5(std::string_view bytes) {
  std::string digest(MD5_DIGEST_LENGTH, '\0');
  const int done = EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                              nullptr, EVP_md5(), nullptr);
  DIVAN_CHECK(done == 1, "MD5 failed");
  return digest;
}

std::string hmac_sha256(std::string_view key, std::string_view message) {
  std::string code(SHA256_DIGEST_LENGTH, '\0');
  const auto* const done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                                reinterpret_cast<unsigned char*>(code.data()), nullptr);
  DIVAN_CHECK(done != nullptr, "HMAC-SHA-256 failed");
  return code;
}

}  // namespace divan
