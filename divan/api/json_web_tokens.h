// Authentication by JSON Web Tokens (RFC 7519), which another server signs
// (https://docs.couchdb.org/en/stable/api/server/authn.html#jwt-authentication).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/config.h"

namespace divan::api {

/// The user that a token names.
struct TokenUser {
  std::string name;                         ///< the claim `sub`
  std::vector<std::string> roles{};         ///< may have `_admin`
  std::optional<std::int64_t> expires_s{};  ///< the claim `exp`, seconds since 1970; nullopt: there is none
};

/// The keys of those who sign tokens, and what tokens must claim. Immutable, hence thread-safe.
class TokenVerifier {
 public:
  /// Reads [jwt_keys], whose keys are TYPE:ID (`hmac`, `rsa`, `ec`, `eddsa`), and [jwt_auth] required_claims,
  /// roles_claim_path and roles_claim_name. Throws bad_request for an invalid value.
  explicit TokenVerifier(const Config& config);
  ~TokenVerifier();

  bool has_keys() const { return !keys_.empty(); }

  /// Verifies a token in its compact form (RFC 7515, section 3.1). Throws CouchDB's errors: bad_request for a
  /// malformed token, an unknown key, a wrong signature or a wrong claim; unauthorized (401) for one that has
  /// expired, is not valid yet, or names nobody.
  TokenUser verify(std::string_view token, std::int64_t now_s) const;

 private:
  class Key;
  enum class Claim : std::uint8_t { exp, nbf, iat, typ, kid };

  void read_required_claims(const std::string& list);
  bool is_required(Claim claim) const;
  const Key& key_of(std::string_view algorithm, const std::optional<std::string>& id) const;
  void check_claims(std::string_view claims, std::int64_t now_s) const;
  std::vector<std::string> roles_of(std::string_view claims) const;

  std::map<std::string, std::unique_ptr<const Key>, std::less<>> keys_;  // by TYPE:ID
  std::vector<Claim> required_;
  std::optional<std::string> issuer_;
  std::vector<std::string> roles_path_;
};

}  // namespace divan::api
