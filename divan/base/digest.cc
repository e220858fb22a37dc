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

struct Digest::State {
  State() { DIVAN_CHECK(context != nullptr, "there is no memory for a digest"); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* const context = EVP_MD_CTX_new();
};

Digest::Digest(Algorithm algorithm) : state_(std::make_unique<State>()) {
  const auto* type = algorithm == Algorithm::md5 ? EVP_md5() : EVP_sha256();
  const int done = EVP_DigestInit_ex(state_->context, type, nullptr);
  DIVAN_CHECK(done == 1, "a digest cannot be computed");
}

Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::string_view bytes) {
  const int done = EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
  DIVAN_CHECK(done == 1, "a digest cannot be computed");
}

std::string Digest::value() const {
  const State copy;
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  const int done =
      EVP_MD_CTX_copy_ex(copy.context, state_->context) == 1
          ? EVP_DigestFinal_ex(copy.context, reinterpret_cast<unsigned char*>(digest.data()), &size)
          : 0;
  DIVAN_CHECK(done == 1, "a digest cannot be computed");
  digest.resize(size);
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
