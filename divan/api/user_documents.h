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

#include "divan/api/accounts.h"
#include "divan/base/config.h"
#include "divan/docs/catalog.h"
#include "divan/docs/document.h"

namespace divan::api {

using docs::kUsersDatabase;

/// Creates the database if it does not exist. Processes that share a store may call this concurrently.
void create_users_database(kv::Database& store, docs::Catalog& catalog);

/// Prepares a document for writing to _users: throws forbidden (403) with CouchDB's words unless it is a
/// valid user (design and local documents, and deletions, are not checked), and replaces its password by a
/// hash.
void prepare_user_document(docs::IncomingDocument& document, int iterations, Rng& rng);

/// Prepares any document for writing: calls prepare_user_document() if the database is _users, with the
/// configured number of iterations ([chttpd_auth] iterations).
void prepare_document(std::string_view database, docs::IncomingDocument& document, const Config& config,
                      Rng& rng);

/// The account in a user's document; nullopt if it is malformed or has no password. Robust against any stored
/// `body`, also if it was not prepared by prepare_user_document().
std::optional<Account> read_user_document(std::string_view name, std::string_view body);

/// The current account of a user; nullopt if it does not exist. Throws unauthorized (401) if the document has
/// conflicts, since it is undefined which of the passwords is valid.
std::optional<Account> find_user(kv::Transaction& tx, docs::Catalog& catalog, std::string_view name);

}  // namespace divan::api
