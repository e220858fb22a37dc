#include "divan/kv/tuple_packer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/kv/tuple_codes.h"

namespace divan::kv::tuple {
namespace {

constexpr std::size_t kMaxIntegerSize = 255;

char as_char(unsigned char byte) { return static_cast<char>(byte); }

// The bytes, zeros escaped, and the zero that ends them.
void append_terminated(std::string& out, std::string_view value) {
  for (;;) {
    const std::size_t zero = value.find('\0');
    if (zero == std::string_view::npos) break;
    out.append(value.substr(0, zero + 1));
    out += as_char(kEscapeCode);
    value.remove_prefix(zero + 1);
  }
  out.append(value);
  out += '\0';
}

// `code` and the `size` low bytes of `value`, highest first.
void append_integer(std::string& out, unsigned code, std::uint64_t value, unsigned size) {
  char bytes[9] = {static_cast<char>(code)};
  const std::uint64_t highest_first = __builtin_bswap64(size == 0 ? 0 : value << (8 * (8 - size)));
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(bytes + 1, &highest_first, 8);
  out.append(bytes, size + 1);
}

unsigned byte_width(std::uint64_t value) { return (static_cast<unsigned>(std::bit_width(value)) + 7) / 8; }

// IEEE 754's total order as an order of unsigned numbers.
template <class Bits>
Bits ordered_from_ieee(Bits bits) {
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  return bits & kSign ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign);
}

template <class Bits>
Bits ieee_from_ordered(Bits ordered) {
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  return ordered & kSign ? static_cast<Bits>(ordered & ~kSign) : static_cast<Bits>(~ordered);
}

void complement(std::string& bytes, std::size_t from) {
  for (std::size_t i = from; i < bytes.size(); ++i) bytes[i] = static_cast<char>(~bytes[i]);
}

}  // namespace

Packer& Packer::null() {
  out_ += as_char(kNullCode);
  if (depth_ > 0) out_ += as_char(kEscapeCode);
  return *this;
}

Packer& Packer::bytes(std::string_view value) {
  out_ += as_char(kBytesCode);
  append_terminated(out_, value);
  return *this;
}

Packer& Packer::string(std::string_view text) {
  out_ += as_char(kStringCode);
  append_terminated(out_, text);
  return *this;
}

Packer& Packer::positive_integer(std::uint64_t value) {
  const unsigned size = byte_width(value);
  append_integer(out_, kZeroCode + size, value, size);
  return *this;
}

Packer& Packer::negative_integer(std::uint64_t magnitude) {
  const unsigned size = byte_width(magnitude);
  append_integer(out_, kZeroCode - size, ~magnitude, size);
  return *this;
}

Packer& Packer::big_integer(const BigInteger& value) {
  std::string_view magnitude = value.magnitude;
  magnitude.remove_prefix(std::min(magnitude.find_first_not_of('\0'), magnitude.size()));
  if (magnitude.size() > kMaxIntegerSize) throw internal_error("An integer of a key exceeds 255 bytes.");
  const auto size = static_cast<unsigned char>(magnitude.size());
  if (size <= 8) {
    out_ += static_cast<char>(value.negative ? kZeroCode - size : kZeroCode + size);
  } else {
    out_ += as_char(value.negative ? kBigNegativeCode : kBigPositiveCode);
    out_ += as_char(value.negative ? static_cast<unsigned char>(~size) : size);
  }
  const std::size_t digits = out_.size();
  out_.append(magnitude);
  if (value.negative) complement(out_, digits);
  return *this;
}

Packer& Packer::float32(float value) {
  out_ += as_char(kFloatCode);
  append_u32(out_, ordered_from_ieee(std::bit_cast<std::uint32_t>(value)));
  return *this;
}

Packer& Packer::float64(double value) {
  out_ += as_char(kDoubleCode);
  append_u64(out_, ordered_from_ieee(std::bit_cast<std::uint64_t>(value)));
  return *this;
}

Packer& Packer::boolean(bool value) {
  out_ += as_char(value ? kTrueCode : kFalseCode);
  return *this;
}

Packer& Packer::uuid(const Uuid& value) {
  out_ += as_char(kUuidCode);
  out_.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  return *this;
}

Packer& Packer::versionstamp(const Versionstamp& value) {
  out_ += as_char(kVersionstampCode);
  if (!value.is_complete()) {
    incomplete_offset_ = out_.size();
    ++incomplete_;
  }
  out_.append(value.bytes());
  return *this;
}

Packer& Packer::begin_nested() {
  out_ += as_char(kNestedCode);
  ++depth_;
  return *this;
}

Packer& Packer::end_nested() {
  DIVAN_CHECK(depth_ > 0, "a nested tuple ends that has not begun");
  out_ += '\0';
  --depth_;
  return *this;
}

void Packer::finish_versionstamped() {
  if (incomplete_ != 1)
    throw internal_error("A versionstamped key needs exactly one incomplete versionstamp.");
  DIVAN_CHECK(incomplete_offset_ + Versionstamp::kSize <= out_.size(), "a versionstamp at {} of {} bytes",
              incomplete_offset_, out_.size());
  for (unsigned shift = 0; shift < 32; shift += 8) out_ += static_cast<char>(incomplete_offset_ >> shift);
}

bool Reader::next_is(unsigned char code) const {
  return !rest_.empty() && static_cast<unsigned char>(rest_.front()) == code;
}

bool Reader::take_null() {
  if (!next_is(kNullCode)) return false;
  if (depth_ > 0) {
    if (rest_.size() < 2 || rest_[1] != as_char(kEscapeCode)) return false;
    rest_.remove_prefix(1);
  }
  rest_.remove_prefix(1);
  return true;
}

std::optional<std::string> Reader::take_terminated(unsigned char code) {
  if (!next_is(code)) return std::nullopt;
  std::string value;
  std::string_view from = rest_.substr(1);
  for (;;) {
    const std::size_t zero = from.find('\0');
    if (zero == std::string_view::npos) return std::nullopt;
    const bool escaped = zero + 1 < from.size() && from[zero + 1] == as_char(kEscapeCode);
    value.append(from.substr(0, zero + (escaped ? 1 : 0)));
    from.remove_prefix(zero + (escaped ? 2 : 1));
    if (!escaped) break;
  }
  rest_ = from;
  return value;
}

std::optional<std::string> Reader::take_bytes() { return take_terminated(kBytesCode); }

std::optional<std::string> Reader::take_string() {
  const std::string_view before = rest_;
  std::optional<std::string> text = take_terminated(kStringCode);
  if (text && !is_utf8(*text)) {
    rest_ = before;
    return std::nullopt;
  }
  return text;
}

// The integer that comes next, if it is in its shortest form: then there is one encoding of each number, and
// what is read packs to the same bytes again.
std::optional<Reader::Integer> Reader::next_integer() const {
  if (rest_.empty()) return std::nullopt;
  const int code = static_cast<unsigned char>(rest_.front());
  Integer integer{code < kZeroCode, {}, 0};
  std::size_t header = 1;
  std::size_t digits;
  if (code == kBigPositiveCode || code == kBigNegativeCode) {
    if (rest_.size() < 2) return std::nullopt;
    const auto size = static_cast<unsigned char>(integer.negative ? ~rest_[1] : rest_[1]);
    if (size <= 8) return std::nullopt;
    header = 2;
    digits = size;
  } else if (code > kBigNegativeCode && code < kBigPositiveCode) {
    digits = static_cast<std::size_t>(integer.negative ? kZeroCode - code : code - kZeroCode);
  } else {
    return std::nullopt;
  }
  integer.size = header + digits;
  if (rest_.size() < integer.size) return std::nullopt;
  integer.digits = rest_.substr(header, digits);
  if (digits > 0 && integer.digits.front() == (integer.negative ? '\xff' : '\0')) return std::nullopt;
  return integer;
}

std::optional<std::uint64_t> Reader::next_magnitude(const Integer& integer) const {
  if (integer.digits.size() > 8) return std::nullopt;
  std::uint64_t magnitude = 0;
  for (const char digit : integer.digits) {
    magnitude = magnitude << 8 | static_cast<unsigned char>(integer.negative ? ~digit : digit);
  }
  return magnitude;
}

std::optional<std::int64_t> Reader::take_int() {
  // Most integers are small and not negative.
  if (const int size = rest_.empty() ? -1 : static_cast<unsigned char>(rest_.front()) - kZeroCode;
      size >= 0 && size < 8 && std::ssize(rest_) > size && (size == 0 || rest_[1] != '\0')) {
    std::int64_t value = 0;
    for (const char digit : rest_.substr(1, static_cast<std::size_t>(size))) {
      value = value << 8 | static_cast<unsigned char>(digit);
    }
    rest_.remove_prefix(static_cast<std::size_t>(size) + 1);
    return value;
  }
  const std::optional<Integer> integer = next_integer();
  if (!integer) return std::nullopt;
  const std::optional<std::uint64_t> magnitude = next_magnitude(*integer);
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!magnitude || *magnitude > kMax + (integer->negative ? 1 : 0)) return std::nullopt;
  rest_.remove_prefix(integer->size);
  return static_cast<std::int64_t>(integer->negative ? ~*magnitude + 1 : *magnitude);
}

std::optional<std::uint64_t> Reader::take_uint() {
  const std::optional<Integer> integer = next_integer();
  if (!integer || integer->negative) return std::nullopt;
  const std::optional<std::uint64_t> magnitude = next_magnitude(*integer);
  if (magnitude) rest_.remove_prefix(integer->size);
  return magnitude;
}

std::optional<BigInteger> Reader::take_big_integer() {
  const std::optional<Integer> integer = next_integer();
  if (!integer) return std::nullopt;
  BigInteger value{integer->negative, std::string(integer->digits)};
  if (value.negative) complement(value.magnitude, 0);
  rest_.remove_prefix(integer->size);
  return value;
}

std::optional<std::string_view> Reader::take_fixed(unsigned char code, std::size_t size) {
  if (!next_is(code) || rest_.size() < 1 + size) return std::nullopt;
  const std::string_view value = rest_.substr(1, size);
  rest_.remove_prefix(1 + size);
  return value;
}

std::optional<float> Reader::take_float32() {
  const auto value = take_fixed(kFloatCode, sizeof(float));
  if (!value) return std::nullopt;
  return std::bit_cast<float>(ieee_from_ordered(read_u32(*value)));
}

std::optional<double> Reader::take_float64() {
  const auto value = take_fixed(kDoubleCode, sizeof(double));
  if (!value) return std::nullopt;
  return std::bit_cast<double>(ieee_from_ordered(read_u64(*value)));
}

std::optional<bool> Reader::take_bool() {
  if (!next_is(kFalseCode) && !next_is(kTrueCode)) return std::nullopt;
  const bool value = next_is(kTrueCode);
  rest_.remove_prefix(1);
  return value;
}

std::optional<Uuid> Reader::take_uuid() {
  Uuid uuid;
  const auto value = take_fixed(kUuidCode, uuid.bytes.size());
  if (!value) return std::nullopt;
  std::copy(value->begin(), value->end(), uuid.bytes.begin());
  return uuid;
}

std::optional<Versionstamp> Reader::take_versionstamp() {
  const auto value = take_fixed(kVersionstampCode, Versionstamp::kSize);
  if (!value) return std::nullopt;
  return Versionstamp::from_bytes(*value);
}

bool Reader::begin_nested() {
  if (!next_is(kNestedCode)) return false;
  rest_.remove_prefix(1);
  ++depth_;
  return true;
}

bool Reader::end_nested() {
  if (depth_ == 0 || !next_is(kNullCode)) return false;
  if (rest_.size() > 1 && rest_[1] == as_char(kEscapeCode)) return false;
  rest_.remove_prefix(1);
  --depth_;
  return true;
}

}  // namespace divan::kv::tuple
