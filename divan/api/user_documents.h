// The documents of the database _users, each of which is a user who can log in
// (https://docs.couchdb.org/en/stable/intro/security.html#authentication-database):
//
//   {"_id":"org.couchdb.user:ann", "name":"ann", "type":"user", "roles":["events"], "password":"..."}
//
// A stored document has a hash instead of `password`, as in CouchDB since 3.4: `password_scheme` (pbkdf2),
// `pbkdf2_prf`, `iterations`, `salt` and `derived_key` (hexadecimal).
#pragma once

#include <optional>
#include <string_view>

#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/docs/catalog.h"
#include "divan/docs/writer.h"

namespace divan::api {

using docs::kUsersDatabase;

/// Creates the database if it does not exist. Processes that share a store may call this concurrently.
void create_users_database(kv::Database& store, docs::Catalog& catalog);

/// Throws unless a user who is no admin of _users, or an anonymous one, may send this request, whose path
/// begins with _users: users read, write and delete their own documents, and anonymous ones create documents,
/// one in a request. The document of another user is not found (404).
void check_user_request(const Call& call);

/// The rules for documents that a user who is no admin of _users writes, as CouchDB's _design/_auth has them:
/// new ones have no roles, and roles cannot be changed. A document has at most 64 KiB, and a hash that the
/// user brings no more iterations than those of this server. `call` must outlive the rules.
docs::WriteRules user_write_rules(const Context& context, const Call& call);

/// Prepares a document for writing to _users: throws forbidden (403) with CouchDB's words unless it is a
/// valid user (design and local documents, and deletions, are not checked), and replaces its password by a
/// hash.
void prepare_user_document(docs::IncomingDocument& document, int iterations, Rng& rng);

/// Prepares any document for writing: calls replicator::check_document() if the database is one of
/// replications, and prepare_user_document() if it is _users, with the configured number of iterations
/// ([chttpd_auth] iterations).
///
/// For users who are no administrators of the server one password is hashed at a time, and one for anonymous
/// ones, so that they leave the processors to others; throws service_unavailable (503) meanwhile.
void prepare_document(const Context& context, const User& user, std::string_view database,
                      docs::IncomingDocument& document);

/// The account in a user's document; nullopt if it is malformed or has no password. Robust against any stored
/// `body`, also if it was not prepared by prepare_user_document().
std::optional<Account> read_user_document(std::string_view name, std::string_view body);

/// Replaces the hash in a user's document, unless it is not `before` any more. Validation functions
/// are not called. Throws Catalog::check_document()'s errors.
void replace_hash(kv::Transaction& tx, docs::Catalog& catalog, const std::string& name,
                  const PasswordHash& before, const PasswordHash& after);

/// The current account of a user; nullopt if it does not exist. Throws unauthorized (401) if the document has
/// conflicts, since it is undefined which of the passwords is valid.
std::optional<Account> find_user(kv::Transaction& tx, docs::Catalog& catalog, std::string_view name);

}  // namespace divan::api
