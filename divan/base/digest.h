// SHA-256 (FIPS 180-4), codes made with it, and MD5.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace divan {

/// The first `size` bytes of the digest, 1 to 32. Thread-safe.
std::string sha256(std::string_view bytes, std::size_t size = 32);

/// The 16 bytes of the MD5 (RFC 1321), which is not collision-resistant. Thread-safe.
std::string md5(std::string_view bytes);

/// The digest of bytes that are added piece by piece. Not thread-safe.
class Digest {
 public:
  enum class Algorithm { md5, sha256 };

  explicit Digest(Algorithm algorithm);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(std::string_view bytes);
  /// The digest of what was added so far.
  std::string value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The 32 bytes of HMAC-SHA-256 (RFC 2104).
std::string hmac_sha256(std::string_view key, std::string_view message);

}  // namespace divan
