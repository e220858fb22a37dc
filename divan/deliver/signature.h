// Signatures of messages.
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace divan::deliver {

/// The bytes of a secret: "whsec_" and the Base64 form of 24 to 64 bytes. nullopt for other texts.
std::optional<std::string> decode_secret(std::string_view secret);

/// The field `webhook-signature`: a signature for each of the secrets, which must be valid. `timestamp` is in
/// seconds since 1970.
std::string sign(std::span<const std::string> secrets, std::string_view message_id, std::int64_t timestamp,
                 std::string_view body);

}  // namespace divan::deliver
