#include "divan/http/etag.h"

#include "divan/base/bytes.h"
#include "divan/base/digest.h"

namespace divan::http {
namespace {

constexpr std::size_t kDigestBytes = 16;

std::string_view without_weakness(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  return etag;
}

}  // namespace

std::string etag_of(std::string_view bytes) { return "\"" + to_hex(sha256(bytes, kDigestBytes)) + "\""; }

bool if_none_match(std::string_view field, std::string_view etag) {
  const auto wanted = without_weakness(etag);
  constexpr std::string_view kBetween = " \t,";
  for (auto at = field.find_first_not_of(kBetween); at < field.size();
       at = field.find_first_not_of(kBetween, at)) {
    field.remove_prefix(at);
    if (field.front() == '*') return true;
    field = without_weakness(field);
    if (!field.starts_with('"')) return false;
    // A tag may contain commas: only its closing quote ends it.
    const auto close = field.find('"', 1);
    if (close == std::string_view::npos) return false;
    if (field.substr(0, close + 1) == wanted) return true;
    at = close + 1;
  }
  return false;
}

}  // namespace divan::http
