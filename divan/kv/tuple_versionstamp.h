// A versionstamp: the 12 bytes that order everything that is ever written to the store.
//
// The store fills in the first 10 bytes when a transaction commits: 8 bytes of commit version and 2 bytes
// that order the transactions of one version. The writer chooses the last 2 bytes, which order the writes
// within its transaction. Until the commit the first 10 bytes are 0xff, and the versionstamp is incomplete
// (FoundationDB, design/tuple.md, "96 bit versionstamp").
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace divan::kv {

/// A versionstamp, complete or not. Its order is the order of its bytes, which is the order of commits; what
/// is incomplete comes after all that is complete. A value type.
class Versionstamp {
 public:
  static constexpr std::size_t kSize = 12;
  static constexpr std::size_t kTransactionSize = 10;

  /// All zero: before every versionstamp that a store gives.
  Versionstamp() = default;

  /// To be completed by the store at commit.
  static Versionstamp incomplete(std::uint16_t user_version = 0);

  /// `transaction_version` is the 10 bytes that the store gave a transaction; throws an internal error if it
  /// is of another length.
  static Versionstamp complete(std::string_view transaction_version, std::uint16_t user_version = 0);

  /// Returns nullopt if there are not exactly 12 bytes.
  static std::optional<Versionstamp> from_bytes(std::string_view bytes);

  /// Returns nullopt if `hex` is not exactly 24 hexadecimal digits.
  static std::optional<Versionstamp> from_hex(std::string_view hex);

  bool is_complete() const;

  /// The view lasts as long as this object.
  std::string_view bytes() const { return {reinterpret_cast<const char*>(bytes_.data()), kSize}; }
  std::string_view transaction_version() const { return bytes().substr(0, kTransactionSize); }
  std::uint16_t user_version() const;

  /// 24 lower-case digits, in the same order as the versionstamps.
  std::string hex() const;

  auto operator<=>(const Versionstamp&) const = default;

 private:
  std::array<unsigned char, kSize> bytes_{};
};

}  // namespace divan::kv
