// Who may use a database: its security object
// (https://docs.couchdb.org/en/stable/api/database/security.html).
//
//   {"admins": {"names": ["ann"], "roles": []}, "members": {"names": [], "roles": ["staff"]}}
//
// Members read all documents and write all but design documents. Admins also write design documents and
// change the database's settings. A database whose object names no members is public. Administrators of the
// server may do everything.
#pragma once

#include <optional>
#include <string_view>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/docs/writer.h"

namespace divan::api {

/// The security object of a database in which none is stored: for administrators of the server only.
inline constexpr std::string_view kDefaultSecurity =
    R"({"admins":{"roles":["_admin"]},"members":{"roles":["_admin"]}})";
/// That of a public database.
inline constexpr std::string_view kPublicSecurity = "{}";

/// [couchdb] users_db_security_editable
bool are_users_editable(const Context& context);

/// Parses a security object; returns the form in which it is stored. Throws bad_request unless `json` is an
/// object, whose lists of names and roles are lists of strings, and too_large (413) if the store cannot hold
/// it.
std::string parse_security(std::string_view json);

/// The security object of a database; the default if none is stored.
std::string read_security(kv::Transaction& tx, const docs::Database& database);

/// What the user may do in a database with the security object `security`. Lists that parse_security() would
/// refuse, which earlier versions have stored, name nobody; a database with such members is not public.
DatabaseAccess access_of(const User& user, std::string_view security);

/// Reads the user's access in the transaction. Throws unauthorized (401) or forbidden (403) if there is none.
/// The system databases are for administrators of the server only; _users is not if [couchdb]
/// users_db_security_editable is true. Other replicator databases are for their admins only.
DatabaseAccess check_access(const Context& context, kv::Transaction& tx, const docs::Database& database,
                            const User& user);

/// Throws unauthorized (401) or forbidden (403) unless the user, who is no administrator of the server, may
/// send this request, whose path begins with a database; not_found if that does not exist. Sets the call's
/// access.
Async<void> authorize(const Context& context, Call& call);
/// The same for a request that was authorised before, and has gone on for long: checks whether the user still
/// exists, or its token is still valid, and has access with its present roles.
Async<void> authorize_again(const Context& context, Call& call);

/// The rules for the documents that an authorised request writes. `call` must outlive them.
docs::WriteRules write_rules(const Context& context, const Call& call);

}  // namespace divan::api
