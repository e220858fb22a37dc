// The documents of the database _users, each of which is somebody who may log in
// (https://docs.couchdb.org/en/stable/intro/security.html#authentication-database):
//
//   {"_id":"org.couchdb.user:ann", "name":"ann", "type":"user", "roles":["events"], "password":"..."}
//
// What is stored has in place of `password` its hash, as CouchDB from 3.4 on writes it: `password_scheme`
// (pbkdf2), `pbkdf2_prf`, `iterations`, `salt` and `derived_key` (hexadecimal).
#pragma once

#include <optional>
#include <string_view>

#include "divan/api/accounts.h"
#include "divan/base/config.h"
#include "divan/docs/catalog.h"
#include "divan/docs/document.h"

namespace divan::api {

using docs::kUsersDatabase;

/// Creates the database if the store has none. Processes that share a store may call this at the same time.
void create_users_database(kv::Database& store, docs::Catalog& catalog);

/// For a document that is to be written to _users: throws forbidden (403) with CouchDB's words unless it is a
/// user's (design and local documents, and deletions, pass), and puts the hash in place of its password.
void prepare_user_document(docs::IncomingDocument& document, int iterations, Rng& rng);

/// What every document goes through before it is written: the above, if the database is _users, with as many
/// iterations as the settings say ([chttpd_auth] iterations).
void prepare_document(std::string_view database, docs::IncomingDocument& document, const Config& config,
                      Rng& rng);

/// The account in a user's document; nothing if it is malformed or has no password. Reads whatever the store
/// has: `body` need not have come through prepare_user_document().
std::optional<Account> read_user_document(std::string_view name, std::string_view body);

/// The account of a user as it is now; nothing if there is none. Throws unauthorized (401) if the document
/// has conflicts, since no replica's version of a password is better than another's.
std::optional<Account> find_user(kv::Database& store, docs::Catalog& catalog, std::string_view name);

}  // namespace divan::api
