// The type codes of FoundationDB's tuple layer (design/tuple.md): the first byte of every packed element.
#pragma once

namespace divan::kv::tuple {

inline constexpr unsigned char kNullCode = 0x00;
inline constexpr unsigned char kBytesCode = 0x01;
inline constexpr unsigned char kStringCode = 0x02;
inline constexpr unsigned char kNestedCode = 0x05;
inline constexpr unsigned char kBigNegativeCode = 0x0b;
/// 8 bytes below to 8 bytes above: the code says the sign and the number of bytes of an integer.
inline constexpr unsigned char kZeroCode = 0x14;
inline constexpr unsigned char kBigPositiveCode = 0x1d;
inline constexpr unsigned char kFloatCode = 0x20;
inline constexpr unsigned char kDoubleCode = 0x21;
inline constexpr unsigned char kFalseCode = 0x26;
inline constexpr unsigned char kTrueCode = 0x27;
inline constexpr unsigned char kUuidCode = 0x30;
inline constexpr unsigned char kVersionstampCode = 0x33;
/// After a zero byte: the zero belongs to the string, or is a null in a nested tuple.
inline constexpr unsigned char kEscapeCode = 0xff;

}  // namespace divan::kv::tuple
