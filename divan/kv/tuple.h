// FoundationDB's tuple layer: an encoding of sequences of typed values as byte strings whose order is the
// order of the sequences. Every key of the store is such a string, so that keys sort by what they mean, can
// be read by people and by the tuple layers of other languages, and a sequence's packed bytes are a prefix of
// the bytes of all longer sequences that begin with it. The format is that of
// https://github.com/apple/foundationdb/blob/main/design/tuple.md, byte for byte.
//
// Values of different types sort in this order: null, byte strings, text, nested tuples, integers, 32-bit
// floats, 64-bit floats, truth values, UUIDs, versionstamps. Integers sort by value whatever their size,
// floats in IEEE's total order (-NaN, -inf, ..., -0, 0, ..., inf, NaN).
//
// There is exactly one encoding of each value here. What other writers could produce beside it (an integer
// with leading zero bytes; the Python binding's long form of 2^64-1, which the specification lacks) is
// refused.
//
// tuple_packer.h is the fast path for keys of known shape; the tree of values below is for tools and for keys
// of unknown shape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "divan/kv/key_range.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv {

/// The first key after all keys that begin with `prefix`. Throws an internal error if there is none (`prefix`
/// is empty or all 0xff).
std::string strinc(std::string_view prefix);

namespace tuple {

using Null = std::monostate;

struct Bytes {
  std::string value;
  bool operator==(const Bytes&) const = default;
};

struct String {
  std::string value;  ///< UTF-8
  bool operator==(const String&) const = default;
};

struct Element;
using Tuple = std::vector<Element>;

/// One value. Unpacking gives each integer in the first of std::int64_t, std::uint64_t and BigInteger that
/// holds it; packing takes it in any of them. A value type.
struct Element : std::variant<Null, Bytes, String, Tuple, std::int64_t, std::uint64_t, BigInteger, float,
                              double, bool, Uuid, Versionstamp> {
  using variant::variant;
};

/// Tuples nested deeper than this are refused when unpacking (our rule, not the format's).
inline constexpr int kMaxDepth = 200;

/// Throws an internal error if there is an incomplete versionstamp, or an integer of more than 255 bytes.
std::string pack(const Tuple& tuple);

/// `prefix` and the packed tuple, which must have exactly one incomplete versionstamp, and the 4 bytes that
/// say where it is: see Packer::finish_versionstamped(). Throws an internal error otherwise.
std::string pack_with_versionstamp(const Tuple& tuple, std::string_view prefix = {});

/// Throws Error 500 "corrupt_key" if `bytes` are not exactly what packing some tuple gives.
Tuple unpack(std::string_view bytes);

/// All keys that begin with the tuple and are longer.
KeyRange range(const Tuple& tuple);

/// Packs all elements, incomplete versionstamps included.
void append(Packer& packer, const Tuple& tuple);

/// For people: ("jobs", "pend", 5, b"\x00").
std::string to_string(const Tuple& tuple);

/// A key for people: as a tuple if it is one, else as bytes. Never throws.
std::string describe(std::string_view key);

}  // namespace tuple
}  // namespace divan::kv
