#include "divan/http/basic_auth.h"

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/http/message.h"

namespace divan::http {

std::optional<Credentials> parse_basic(std::string_view field) {
  constexpr std::string_view kScheme = "Basic ";
  if (!equal_ignoring_case(field.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  field.remove_prefix(std::min(field.find_first_not_of(' ', kScheme.size()), field.size()));
  const auto decoded = from_base64(field);
  const auto colon = decoded ? decoded->find(':') : std::string::npos;
  if (colon == std::string::npos) throw bad_request("The Authorization header is malformed.");
  return Credentials{decoded->substr(0, colon), decoded->substr(colon + 1)};
}

std::string basic_authorization(const Credentials& credentials) {
  return "Basic " + to_base64(credentials.name + ':' + credentials.password);
}

}  // namespace divan::http
