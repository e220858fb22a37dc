#include "divan/api/user_documents.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "divan/api/password_rules.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"
#include "divan/docs/reader.h"
#include "divan/replicator/replication_document.h"

namespace divan::api {
namespace {

constexpr std::string_view kIdPrefix = "org.couchdb.user:";
// More would make a hash slow beyond its iterations.
constexpr std::size_t kMaxKeyBytes = 64;
constexpr std::size_t kSha1Bytes = 20;
constexpr std::size_t kMaxOwnDocumentBytes = 64 << 10;

// Members that describe a password: those of all versions of CouchDB.
constexpr std::array<std::string_view, 7> kPasswordMembers = {
    "password", "password_scheme", "password_sha", "pbkdf2_prf", "iterations", "salt", "derived_key"};

// CouchDB's names of the hash functions, with OpenSSL's.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kDigests = {{{"sha", "SHA1"},
                                                                                    {"sha224", "SHA224"},
                                                                                    {"sha256", "SHA256"},
                                                                                    {"sha384", "SHA384"},
                                                                                    {"sha512", "SHA512"}}};

using json::find;
using json::Members;
using json::members_of;

std::optional<std::string> find_string(const Members& members, std::string_view name) {
  return json::string_value(find(members, name).value_or(""));
}

std::vector<std::string> read_roles(const Members& members) {
  const auto list = find(members, "roles");
  if (!list) throw forbidden("doc.roles must exist");
  std::vector<std::string> roles;
  const bool is_array = json::for_each_element(*list, [&](std::string_view element) {
    auto role = json::string_value(element);
    if (!role) throw forbidden("doc.roles can only contain strings");
    if (role->starts_with('_') && *role != kMetricsRole)
      throw forbidden("No system roles (starting with underscore) in users db.");
    roles.push_back(*std::move(role));
    return true;
  });
  if (!is_array) throw forbidden("doc.roles must be an array");
  return roles;
}

PasswordHash read_simple_hash(const Members& members) {
  const auto key = from_hex(find_string(members, "password_sha").value_or(""));
  if (!key || key->size() != kSha1Bytes)
    throw forbidden(fmt::format("password_sha must be {} bytes in hexadecimal digits.", kSha1Bytes));
  const auto salt = find_string(members, "salt");
  if (!salt) throw forbidden("salt must be a string.");
  return {"SHA1", *key, *salt, 0};
}

// Returns nullopt if the document has no hashed password. Throws forbidden if it has a malformed one.
std::optional<PasswordHash> read_hash(const Members& members) {
  const auto scheme = find(members, "password_scheme");
  // Documents of CouchDB before 1.3 name no scheme.
  if (!scheme && !find(members, "password_sha")) return std::nullopt;
  const std::string scheme_name =
      scheme ? json::string_value(*scheme).value_or(std::string(*scheme)) : "simple";
  if (scheme_name == "simple") return read_simple_hash(members);
  if (scheme_name != "pbkdf2" && scheme_name != "simple+pbkdf2")
    throw forbidden(fmt::format("Password scheme `{}` not supported.", scheme_name));
  const auto prf = find(members, "pbkdf2_prf");
  const std::string prf_name = prf ? json::string_value(*prf).value_or(std::string(*prf)) : "sha";
  const auto digest = std::find_if(kDigests.begin(), kDigests.end(),
                                   [&](const auto& entry) { return entry.first == prf_name; });
  if (digest == kDigests.end()) throw forbidden(fmt::format("pbkdf2_prf `{}` not supported.", prf_name));
  const auto iterations = json::int_value(find(members, "iterations").value_or(""));
  if (!iterations) throw forbidden("iterations must be a number.");
  if (*iterations < 1 || *iterations > kMaxPasswordIterations)
    throw forbidden(fmt::format("iterations must be from 1 to {}.", kMaxPasswordIterations));
  const auto key_text = find_string(members, "derived_key");
  if (!key_text) throw forbidden("derived_key must be a string.");
  const auto key = from_hex(*key_text);
  if (!key || key->empty() || key->size() > kMaxKeyBytes)
    throw forbidden(fmt::format("derived_key must be 1 to {} bytes in hexadecimal digits.", kMaxKeyBytes));
  const auto salt = find_string(members, "salt");
  if (!salt) throw forbidden("salt must be a string.");
  return PasswordHash{std::string(digest->second), *key, *salt, static_cast<int>(*iterations),
                      scheme_name == "simple+pbkdf2"};
}

// Validates like CouchDB's _design/_auth, with its messages. Returns the roles.
std::vector<std::string> check_members(std::string_view id, const Members& members) {
  if (find_string(members, "type") != "user") throw forbidden("doc.type must be user");
  const auto name = find_string(members, "name");
  if (!name || name->empty()) throw forbidden("doc.name is required");
  auto roles = read_roles(members);
  if (!id.starts_with(kIdPrefix) || id.substr(kIdPrefix.size()) != *name)
    throw forbidden("Doc ID must be of the form org.couchdb.user:name");
  if (name->starts_with('_')) throw forbidden("Username may not start with underscore.");
  if (name->find(':') != std::string::npos) throw forbidden("Character `:` is not allowed in usernames.");
  return roles;
}

// As read_roles(), but returns no roles for those of a malformed document.
std::vector<std::string> sorted_roles(std::string_view body) {
  std::vector<std::string> roles;
  try {
    roles = read_roles(members_of(body));
  } catch (const Error&) { return {}; }
  std::ranges::sort(roles);
  return roles;
}

int iterations_of(std::string_view body) {
  const auto hash = read_hash(members_of(body));
  return hash ? hash->iterations : 0;
}

// Throws forbidden unless a user who is no admin may replace `before`, which is nullopt for a new document.
void check_user_edit(const User& user, const docs::IncomingDocument& document,
                     const std::optional<std::string>& before, int max_iterations) {
  if (!before) {
    if (document.deleted) throw forbidden("Only admins may delete other user docs.");
    if (!sorted_roles(document.body).empty()) throw forbidden("Only _admin may set roles");
  } else {
    // The rule of the id makes it the user's own, unless the user is anonymous.
    if (user.name.empty()) {
      throw forbidden(document.deleted ? "Only admins may delete other user docs."
                                       : "You may only update your own user document.");
    }
    if (document.deleted) return;
    if (sorted_roles(*before) != sorted_roles(document.body)) throw forbidden("Only _admin may edit roles");
  }
  if (document.deleted) return;
  const int iterations = iterations_of(document.body);
  if (iterations > max_iterations && (!before || iterations != iterations_of(*before)))
    throw forbidden(fmt::format("iterations must be from 1 to {}.", max_iterations));
}

// Removes `password` from a body. If there is a hash, it replaces all members that describe a password.
std::string with_hash(std::string_view body, const std::optional<PasswordHash>& hash) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  json::for_each_member(body, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    const bool replaced =
        hash ? std::find(kPasswordMembers.begin(), kPasswordMembers.end(), name) != kPasswordMembers.end()
             : name == "password";
    if (!replaced) writer.key(name).raw(value);
    return true;
  });
  if (hash) {
    writer.key("password_scheme").string("pbkdf2").key("pbkdf2_prf").string("sha256");
    writer.key("iterations").number(hash->iterations).key("salt").string(hash->salt);
    writer.key("derived_key").string(to_hex(hash->key));
  }
  writer.end_object();
  return out;
}

}  // namespace

void create_users_database(kv::Database& store, docs::Catalog& catalog) {
  store.run([&](kv::Transaction& tx) {
    if (!catalog.find(tx, kUsersDatabase)) catalog.create(tx, kUsersDatabase);
  });
}

void prepare_user_document(docs::IncomingDocument& document, int iterations, Rng& rng) {
  if (docs::is_design(document.id) || document.id.starts_with(docs::kLocalPrefix)) return;
  const Members members = members_of(document.body);
  if (!document.deleted) check_members(document.id, members);
  // As in CouchDB, null means no password.
  const auto password = find(members, "password").value_or("null");
  const auto text = json::string_value(password);
  if (!text && password != "null") throw forbidden("Password must be a string.");
  if (!text && !document.deleted) read_hash(members);
  document.body = with_hash(
      document.body, text ? std::optional(hash_password(*text, iterations, rng.uuid())) : std::nullopt);
}

void prepare_document(const Context& context, const User& user, std::string_view database,
                      docs::IncomingDocument& document) {
  if (replicator::is_replicator_database(database)) replicator::check_document(document, user.admin);
  if (database != kUsersDatabase) return;
  std::unique_lock<Mutex> permit;
  const auto members = members_of(document.body);
  const auto password = find(members, "password").value_or("null");
  if (const auto text = json::string_value(password)) PasswordRules::of(context.config).check(*text);
  if (password != "null") permit = context.accounts.begin_hash(user);
  prepare_user_document(document, password_iterations(context.config), context.rng);
}

void check_user_request(const Call& call) {
  const auto& path = call.path();
  const auto& name = call.user().name;
  // POST: the rules check the document.
  if (path.size() == 1 && (call.method() == "GET" || call.method() == "POST")) return;
  if (path.size() != 2 || !path[1].starts_with(kIdPrefix)) return call.require_admin();
  const bool is_own = !name.empty() && path[1].substr(kIdPrefix.size()) == name;
  if (call.method() == "PUT" && (is_own || name.empty()) && call.flag("new_edits", true)) return;
  if (is_own && (call.method() == "GET" || call.method() == "DELETE")) return;
  throw not_found("missing");
}

docs::WriteRules user_write_rules(const Context& context, const Call& call) {
  docs::WriteRules rules;
  rules.check = [&call](const docs::IncomingDocument& document) {
    const auto& user = call.user();
    const bool is_user = document.id.starts_with(kIdPrefix);
    if (!is_user && docs::is_design(document.id)) throw call.database_admins_only();
    if (!is_user || (!user.name.empty() && document.id.substr(kIdPrefix.size()) != user.name))
      throw not_found("missing");
    // It is read at each request of the user.
    if (!document.attachments.empty()) throw forbidden("Only admins may attach files to users.");
    if (document.body.size() > kMaxOwnDocumentBytes)
      throw Error(413, "document_too_large",
                  fmt::format("A user's own document may have {} bytes.", kMaxOwnDocumentBytes));
  };
  rules.check_edit = [&call, &context](kv::Transaction& tx, const docs::Database& database,
                                       const docs::IncomingDocument& document, const docs::Leaf* current) {
    check_user_edit(call.user(), document,
                    current ? std::optional(docs::read_body(tx, database, *current)) : std::nullopt,
                    password_iterations(context.config));
  };
  return rules;
}

std::optional<Account> read_user_document(std::string_view name, std::string_view body) {
  try {
    const Members members = members_of(body);
    auto roles = check_members(std::string(kIdPrefix).append(name), members);
    auto hash = read_hash(members);
    if (!hash) return std::nullopt;
    return Account{*std::move(hash), std::move(roles)};
  } catch (const Error&) { return std::nullopt; }
}

void replace_hash(kv::Transaction& tx, docs::Catalog& catalog, const std::string& name,
                  const PasswordHash& before, const PasswordHash& after) {
  const auto database = catalog.find(tx, kUsersDatabase);
  if (!database) return;
  const std::string id = std::string(kIdPrefix).append(name);
  const auto tree = docs::read_tree(tx, *database, id);
  if (tree.empty() || tree.front().deleted) return;
  const std::string body = docs::read_body(tx, *database, tree.front());
  const auto account = read_user_document(name, body);
  if (!account || account->password != before) return;
  docs::replace_winner(tx, *database, id, tree.front(), with_hash(body, after));
}

std::optional<Account> find_user(kv::Transaction& tx, docs::Catalog& catalog, std::string_view name) {
  const std::string id = std::string(kIdPrefix).append(name);
  const auto database = catalog.find(tx, kUsersDatabase);
  if (!database) return std::nullopt;
  const auto tree = docs::read_tree(tx, *database, id, kv::Isolation::snapshot);
  if (tree.empty() || tree.front().deleted) return std::nullopt;
  if (tree.size() > 1 && !tree[1].deleted) {
    throw unauthorized(
        "User document conflicts must be resolved before the document is used for authentication "
        "purposes.");
  }
  return read_user_document(name, docs::read_body(tx, *database, tree.front()));
}

}  // namespace divan::api
