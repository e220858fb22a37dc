// The tuple layer's fast path: keys are packed element by element into a string and read back in the order in
// which they were packed, without a tree of values in between. tuple.h says what the encoding is.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "divan/kv/tuple_versionstamp.h"

namespace divan::kv::tuple {

/// An integer of any size up to 255 bytes, as the format has them. From unpacking it comes only where
/// std::int64_t and std::uint64_t are too small, and without leading zero bytes. A value type.
struct BigInteger {
  bool negative = false;
  std::string magnitude;  ///< big-endian
  bool operator==(const BigInteger&) const = default;
};

/// A UUID in network byte order (RFC 4122). A value type.
struct Uuid {
  std::array<unsigned char, 16> bytes{};
  auto operator<=>(const Uuid&) const = default;
};

/// Appends packed elements to a string: Packer(key).string("jobs").bytes(id).integer(5). It trusts its caller
/// and checks nothing but what its methods say. Not thread-safe.
class Packer {
 public:
  /// `out` may hold a prefix already; it must outlive the packer.
  explicit Packer(std::string& out) : out_(out) {}

  Packer& null();
  Packer& bytes(std::string_view value);
  /// `text` must be UTF-8, or it cannot be read back.
  Packer& string(std::string_view text);
  template <std::integral Int>
  Packer& integer(Int value) {
    static_assert(!std::is_same_v<Int, bool>, "a truth value is packed with boolean()");
    if constexpr (std::is_signed_v<Int>) {
      return value < 0 ? negative_integer(~static_cast<std::uint64_t>(value) + 1)
                       : positive_integer(static_cast<std::uint64_t>(value));
    } else {
      return positive_integer(value);
    }
  }
  /// In the shortest form that holds it. Throws an internal error beyond 255 bytes.
  Packer& big_integer(const BigInteger& value);
  Packer& float32(float value);
  Packer& float64(double value);
  Packer& boolean(bool value);
  Packer& uuid(const Uuid& value);
  /// An incomplete versionstamp makes a key that only finish_versionstamped() ends.
  Packer& versionstamp(const Versionstamp& value);

  /// The elements packed between these two calls form a nested tuple.
  Packer& begin_nested();
  Packer& end_nested();

  /// Appends the 4-byte little-endian offset, from the start of the string, of the one incomplete
  /// versionstamp: the form that the store's versionstamped writes take (FoundationDB, API version 520 and
  /// later). Throws an internal error if there is none or more than one.
  void finish_versionstamped();

  /// How many incomplete versionstamps were packed.
  int incomplete_versionstamps() const { return incomplete_; }

 private:
  Packer& positive_integer(std::uint64_t value);
  Packer& negative_integer(std::uint64_t magnitude);

  std::string& out_;
  std::size_t incomplete_offset_ = 0;
  int incomplete_ = 0;
  int depth_ = 0;
};

/// Takes elements of expected types off the front of packed bytes. If the bytes are not exactly what a packer
/// writes for such an element, returns nullopt (or false), and the position does not change. Not thread-safe.
class Reader {
 public:
  /// `bytes` must outlive the reader.
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  /// The bytes that are not read yet.
  std::string_view rest() const { return rest_; }

  bool take_null();
  std::optional<std::string> take_bytes();
  std::optional<std::string> take_string();
  std::optional<std::int64_t> take_int();
  std::optional<std::uint64_t> take_uint();
  /// Any integer, also a small one.
  std::optional<BigInteger> take_big_integer();
  std::optional<float> take_float32();
  std::optional<double> take_float64();
  std::optional<bool> take_bool();
  std::optional<Uuid> take_uuid();
  std::optional<Versionstamp> take_versionstamp();

  /// Enters the nested tuple that comes next.
  bool begin_nested();
  /// Leaves it, if all its elements are taken.
  bool end_nested();

 private:
  struct Integer {
    bool negative;
    std::string_view digits;  ///< big-endian; one's complement if negative
    std::size_t size;         ///< of the whole element
  };
  std::optional<Integer> next_integer() const;
  std::optional<std::uint64_t> next_magnitude(const Integer& integer) const;
  std::optional<std::string_view> take_fixed(unsigned char code, std::size_t size);
  std::optional<std::string> take_terminated(unsigned char code);
  bool next_is(unsigned char code) const;

  std::string_view rest_;
  int depth_ = 0;
};

}  // namespace divan::kv::tuple
