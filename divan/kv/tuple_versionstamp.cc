#include "divan/kv/tuple_versionstamp.h"

#include <algorithm>
#include <cstring>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::kv {

Versionstamp Versionstamp::incomplete(std::uint16_t user_version) {
  return complete(std::string(kTransactionSize, '\xff'), user_version);
}

Versionstamp Versionstamp::complete(std::string_view transaction_version, std::uint16_t user_version) {
  if (transaction_version.size() != kTransactionSize) {
    throw internal_error("A transaction version must have 10 bytes.");
  }
  Versionstamp stamp;
  std::memcpy(stamp.bytes_.data(), transaction_version.data(), kTransactionSize);
  stamp.bytes_[10] = static_cast<unsigned char>(user_version >> 8);
  stamp.bytes_[11] = static_cast<unsigned char>(user_version);
  return stamp;
}

std::optional<Versionstamp> Versionstamp::from_bytes(std::string_view bytes) {
  if (bytes.size() != kSize) return std::nullopt;
  Versionstamp stamp;
  std::memcpy(stamp.bytes_.data(), bytes.data(), kSize);
  return stamp;
}

std::optional<Versionstamp> Versionstamp::from_hex(std::string_view hex) {
  const std::optional<std::string> bytes = divan::from_hex(hex);
  if (!bytes) return std::nullopt;
  return from_bytes(*bytes);
}

bool Versionstamp::is_complete() const {
  return transaction_version().find_first_not_of('\xff') != std::string_view::npos;
}

std::uint16_t Versionstamp::user_version() const { return read_u16(bytes().substr(kTransactionSize)); }

std::string Versionstamp::hex() const { return to_hex(bytes()); }

}  // namespace divan::kv
