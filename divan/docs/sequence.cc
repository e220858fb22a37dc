#include "divan/docs/sequence.h"

#include <charconv>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/error.h"

namespace divan::docs {
namespace {

std::uint64_t version_of(const kv::Versionstamp& stamp) { return read_u64(stamp.bytes()); }

// The greatest versionstamp of a version.
kv::Versionstamp last_of(std::uint64_t version) {
  std::string bytes;
  append_u64(bytes, version);
  bytes.append(4, '\xff');
  DIVAN_CHECK(bytes.size() == kv::Versionstamp::kSize, "a versionstamp of {} bytes", bytes.size());
  return *kv::Versionstamp::from_bytes(bytes);
}

}  // namespace

std::string to_sequence(const kv::Versionstamp& stamp) {
  return std::to_string(version_of(stamp)) + "-" + stamp.hex();
}

kv::Versionstamp parse_sequence(std::string_view text) {
  const Error malformed = bad_request("Malformed sequence supplied in 'since' parameter.");
  const std::size_t dash = text.find('-');
  const std::string_view number = text.substr(0, dash);
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), version);
  if (error != std::errc() || end != number.data() + number.size()) throw malformed;
  if (dash == std::string_view::npos) return version == 0 ? kv::Versionstamp() : last_of(version);
  const auto stamp = kv::Versionstamp::from_hex(text.substr(dash + 1));
  if (!stamp || version_of(*stamp) != version) throw malformed;
  return *stamp;
}

}  // namespace divan::docs
