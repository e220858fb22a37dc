// JSON Web Tokens as clients send them: none is valid that was not signed. A signed one with these claims is
// valid, or is refused.
#include "divan/api/json_web_tokens.h"

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using divan::fuzz::check;
  const std::string_view text = divan::fuzz::text_of(data, size);
  divan::Config config;
  config.override_with("jwt_keys", "hmac:_default", "c2VjcmV0");
  const divan::api::TokenVerifier verifier(config);
  constexpr std::int64_t kNow = 1'700'000'000;
  const auto refused = [&](std::string_view token) {
    try {
      verifier.verify(token, kNow);
      return false;
    } catch (const divan::Error& error) {
      check(error.status() == 400 || error.status() == 401);
      return true;
    }
  };
  check(refused(text));
  const std::string message = divan::to_base64url(R"({"alg":"HS256"})") + "." + divan::to_base64url(text);
  const std::string token = message + "." + divan::to_base64url(divan::hmac_sha256("secret", message));
  if (!refused(token)) check(!verifier.verify(token, kNow).name.empty());
  return 0;
}
