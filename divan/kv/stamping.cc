#include "divan/kv/stamping.h"

#include "divan/base/bytes.h"
#include "divan/base/check.h"

namespace divan::kv {
namespace {

constexpr std::size_t kOffsetBytes = 4;

}  // namespace

std::string versionstamp_bytes(Version version, std::uint16_t order) {
  std::string stamp;
  append_u64(stamp, static_cast<std::uint64_t>(version));
  append_u16(stamp, order);
  return stamp;
}

std::uint32_t take_stamp_offset(std::string_view& bytes) {
  if (bytes.size() < kOffsetBytes) {
    throw Error(ErrorCode::client_invalid_operation, "A versionstamp's offset is missing.");
  }
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < kOffsetBytes; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - kOffsetBytes + i]);
    offset |= static_cast<std::uint32_t>(byte) << (8 * i);
  }
  bytes.remove_suffix(kOffsetBytes);
  if (offset + kVersionstampBytes > bytes.size()) {
    throw Error(ErrorCode::client_invalid_operation, "A versionstamp does not fit at its offset.");
  }
  return offset;
}

std::string stamped(std::string_view bytes, std::uint32_t offset, std::string_view stamp) {
  DIVAN_CHECK(stamp.size() == kVersionstampBytes && offset + stamp.size() <= bytes.size(),
              "a versionstamp of {} bytes at {} of {}", stamp.size(), offset, bytes.size());
  std::string result(bytes);
  result.replace(offset, kVersionstampBytes, stamp);
  return result;
}

KeyRange possible_keys(std::string_view key, std::uint32_t offset, Version read_version) {
  return {stamped(key, offset, versionstamp_bytes(read_version + 1, 0)),
          stamped(key, offset, std::string(kVersionstampBytes, '\xff')) + '\0'};
}

}  // namespace divan::kv
