#include "divan/api/database_access.h"

#include <fmt/core.h>

#include "divan/api/user_documents.h"
#include "divan/base/json.h"
#include "divan/base/json_duplicates.h"
#include "divan/docs/database_settings.h"
#include "divan/index/triggers/definition.h"
#include "divan/replicator/replication_document.h"

namespace divan::api {
namespace {

// The list of names or roles in a group ("admins" or "members").
struct NameList {
  bool is_empty = true;
  bool is_valid = true;
  bool has_match = false;
};

template <class Matches>
NameList read_list(std::string_view group, std::string_view name, const Matches& matches) {
  NameList list;
  const auto value = json::member(group, name);
  if (!value) return list;
  list.is_valid = json::for_each_element(*value,
                                         [&](std::string_view element) {
                                           list.is_empty = false;
                                           const auto text = json::string_value(element);
                                           if (!text) list.is_valid = false;
                                           list.has_match = list.has_match || (text && matches(*text));
                                           return true;
                                         }) &&
                  list.is_valid;
  if (!list.is_valid) list.is_empty = false;
  return list;
}

// `readers` is the name that CouchDB 1.0 gave the members.
std::optional<std::string_view> members_of(std::string_view security) {
  const auto members = json::member(security, "members");
  return members ? members : json::member(security, "readers");
}

bool is_object(std::string_view json) { return json.starts_with('{'); }

struct Group {
  bool is_empty = true;
  bool has_user = false;
};

Group read_group(std::optional<std::string_view> group, const User& user) {
  if (!group) return {};
  if (!is_object(*group)) return {.is_empty = false};
  const auto names =
      read_list(*group, "names", [&](const std::string& name) { return !name.empty() && name == user.name; });
  const auto roles = read_list(*group, "roles", [&](const std::string& role) { return user.has_role(role); });
  return {.is_empty = names.is_empty && roles.is_empty,
          .has_user = (names.is_valid && names.has_match) || (roles.is_valid && roles.has_match)};
}

void check_group(std::string_view what, std::optional<std::string_view> group) {
  if (!group) return;
  if (!is_object(*group)) throw bad_request(fmt::format("`{}` must be an object.", what));
  for (const auto* name : {"names", "roles"}) {
    if (!read_list(*group, name, [](const std::string&) { return false; }).is_valid)
      throw bad_request(fmt::format("`{}` of `{}` must be a list of strings.", name, what));
  }
}

// The object, whose names have no escapes and occur once, as have those of its groups: `"\u006dembers"` are
// members.
std::string with_plain_names(std::string_view object, int levels = 2) {
  const auto unique = json::without_duplicates(object);
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  json::for_each_member(unique ? std::string_view(*unique) : object,
                        [&](std::string_view name, std::string_view value) {
                          writer.key(json::unescape(name));
                          const bool is_group = levels > 1 && is_object(value);
                          writer.raw(is_group ? with_plain_names(value, levels - 1) : std::string(value));
                          return true;
                        });
  writer.end_object();
  return out;
}

// Of an object in that form.
DatabaseAccess access_of_plain(const User& user, std::string_view security) {
  if (user.admin || read_group(json::member(security, "admins"), user).has_user) return DatabaseAccess::admin;
  const Group members = read_group(members_of(security), user);
  return members.is_empty || members.has_user ? DatabaseAccess::member : DatabaseAccess::none;
}

// Routes for administrators of the server, whatever the security object says.
bool is_for_server_admins(const Call& call) {
  const auto& path = call.path();
  if (path.size() == 1) return call.method() == "PUT" || call.method() == "DELETE";
  if (path[1] == "_purge" || path[1] == "_purged_infos_limit") return true;
  // As in CouchDB: they show all users and all replications.
  return path[0].starts_with('_') && (path[1] == "_all_docs" || path[1] == "_changes");
}

}  // namespace

bool are_users_editable(const Context& context) {
  return context.config.get_bool("couchdb", "users_db_security_editable", false);
}

std::string parse_security(std::string_view json) {
  if (!is_object(json)) throw bad_request("The security object must be a JSON object.");
  auto security = with_plain_names(json);
  if (security.size() > kv::kMaxValueBytes)
    throw Error(413, "too_large", "The security object is too large.");
  check_group("admins", json::member(security, "admins"));
  check_group("members", members_of(security));
  return security;
}

std::string read_security(kv::Transaction& tx, const docs::Database& database) {
  return docs::read_config(tx, database, docs::kSecurity).value_or(std::string(kDefaultSecurity));
}

DatabaseAccess access_of(const User& user, std::string_view security) {
  if (security.find('\\') != std::string_view::npos) return access_of_plain(user, with_plain_names(security));
  return access_of_plain(user, security);
}

DatabaseAccess check_access(const Context& context, kv::Transaction& tx, const docs::Database& database,
                            const User& user) {
  if (user.admin) return DatabaseAccess::admin;
  auto access = DatabaseAccess::none;
  const bool is_system_database = database.name().starts_with('_');
  if (!is_system_database || (database.name() == kUsersDatabase && are_users_editable(context))) {
    access = access_of(user, read_security(tx, database));
    // Its documents have passwords.
    if (access == DatabaseAccess::member && replicator::is_replicator_database(database.name()))
      access = DatabaseAccess::none;
  }
  if (access != DatabaseAccess::none) return access;
  if (user.name.empty()) throw unauthorized("You are not authorized to access this db.");
  throw forbidden("You are not allowed to access this db.");
}

Async<void> authorize(const Context& context, Call& call) {
  if (is_for_server_admins(call)) call.require_admin();
  const auto access = co_await call.run(context.store, [&](kv::Transaction& tx) {
    return check_access(context, tx, context.catalog.open(tx, call.path()[0]), call.user());
  });
  call.set_database_access(access);
  if (call.path()[0] == kUsersDatabase && access != DatabaseAccess::admin) check_user_request(call);
}

Async<void> authorize_again(const Context& context, Call& call) {
  User user = call.user();
  if (user.expires_s && context.clock.wall_ms() / 1000 >= *user.expires_s)
    throw unauthorized("exp not in future");
  if (user.admin || call.database_access() == DatabaseAccess::none) co_return;
  co_await call.run(context.store, [&](kv::Transaction& tx) {
    if (!user.name.empty() && !user.is_external) {
      auto account = find_user(tx, context.catalog, user.name);
      if (!account) throw unauthorized("The user does not exist any more.");
      user.roles = std::move(account->roles);
    }
    check_access(context, tx, context.catalog.open(tx, call.path()[0]), user);
  });
}

docs::WriteRules write_rules(const Context& context, const Call& call) {
  docs::WriteRules rules;
  if (call.database_access() == DatabaseAccess::admin) {
    // A trigger adds jobs on behalf of those who have written it.
    if (call.user().admin || call.user().has_role(kJobsRole)) return rules;
    rules.check = [](const docs::IncomingDocument& document) {
      if (docs::is_design(document.id) && json::member(document.body, index::triggers::kKind))
        throw forbidden("Only users with the role `jobs` may write design documents with triggers.");
    };
    return rules;
  }
  if (call.path()[0] == kUsersDatabase) return user_write_rules(context, call);
  rules.check = [&call](const docs::IncomingDocument& document) {
    if (docs::is_design(document.id)) throw call.database_admins_only();
  };
  return rules;
}

}  // namespace divan::api
