// A user's document as an administrator sends it, and as the store may have it: an error, no user, or a user
// without a plain-text password and without reserved roles.
#include "divan/api/user_documents.h"
#include "divan/base/json.h"
#include "fuzz/check.h"

namespace {

namespace api = divan::api;
namespace docs = divan::docs;
namespace json = divan::json;
using divan::fuzz::check;

constexpr std::string_view kIdPrefix = "org.couchdb.user:";

bool has_password(std::string_view body) {
  bool found = false;
  json::for_each_member(body, [&](std::string_view name, std::string_view) {
    found = json::unescape(name) == "password";
    return !found;
  });
  return found;
}

void check_account(const api::Account& account) {
  for (const auto& role : account.roles) check(!role.starts_with('_'));
  check(!account.password.key.empty() && account.password.iterations >= 1);
  check(account.password.iterations <= api::kMaxPasswordIterations);
}

void check_prepared(const docs::IncomingDocument& document, divan::Rng& rng) {
  if (docs::is_design(document.id) || document.id.starts_with(docs::kLocalPrefix)) return;
  check(json::compact(document.body) == document.body);
  check(!has_password(document.body));
  auto again = document;
  api::prepare_user_document(again, 1, rng);
  check(again.body == document.body);
  if (document.deleted) return;
  check(document.id.starts_with(kIdPrefix));
  const auto account = api::read_user_document(document.id.substr(kIdPrefix.size()), document.body);
  if (account) check_account(*account);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  divan::SeededRng rng(1);
  if (const auto account = api::read_user_document("ann", text)) check_account(*account);
  try {
    auto document = docs::parse_document(json::compact(text));
    api::prepare_user_document(document, 1, rng);
    check_prepared(document, rng);
  } catch (const divan::Error& error) {
    check(error.status() == 400 || error.status() == 403 || error.status() == 501);
    check(divan::is_utf8(error.reason()));
  }
  return 0;
}
