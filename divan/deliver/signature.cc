#include "divan/deliver/signature.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/digest.h"

namespace divan::deliver {
namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr std::size_t kMinBytes = 24;
constexpr std::size_t kMaxBytes = 64;

}  // namespace

std::optional<std::string> decode_secret(std::string_view secret) {
  if (!secret.starts_with(kPrefix)) return std::nullopt;
  auto bytes = from_base64(secret.substr(kPrefix.size()));
  if (!bytes || bytes->size() < kMinBytes || bytes->size() > kMaxBytes) return std::nullopt;
  return bytes;
}

std::string sign(std::span<const std::string> secrets, std::string_view message_id, std::int64_t timestamp,
                 std::string_view body) {
  const auto content = fmt::format("{}.{}.{}", message_id, timestamp, body);
  std::string field;
  for (const auto& secret : secrets) {
    const auto key = decode_secret(secret);
    DIVAN_CHECK(key.has_value(), "a secret of {} bytes is malformed", secret.size());
    if (!field.empty()) field += ' ';
    field += "v1," + to_base64(hmac_sha256(*key, content));
  }
  return field;
}

}  // namespace divan::deliver
