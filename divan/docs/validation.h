// Which design documents validate the documents of a database: those with a function `validate_doc_update`
// (https://docs.couchdb.org/en/stable/ddocs/ddocs.html#validate-document-update-functions).
//
// A setting of the database lists them with their revisions. Writers keep it up to date, and each transaction
// that writes documents reads it. The functions run before that transaction, since they are slow; the list
// tells whether they are still those of the database.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/docs/catalog.h"
#include "divan/docs/document.h"

namespace divan::docs {

/// The name of the setting.
inline constexpr std::string_view kValidators = "validate_doc_update";

/// A design document that validates.
struct Validator {
  std::string design_document;  ///< its id
  Revision revision;            ///< of its winner
};

/// The list as it is stored; empty if nothing validates the database's documents.
std::string read_validators(kv::Transaction& tx, const Database& database);

/// The elements of a list, sorted by id. Throws an internal error if it is damaged.
std::vector<Validator> parse_validators(std::string_view list);
std::string format_validators(std::span<const Validator> validators);

/// Returns true if a design document with this body validates documents.
bool has_validation(std::string_view body);

/// Must be called by writers of a design document: enters its winner in the list, or removes it. `body` is
/// the winner's. Throws too_large (413) if the list would become too long.
void update_validators(kv::Transaction& tx, const Database& database, std::string_view id, const Leaf& winner,
                       std::string_view body);

/// Thrown by a transaction that writes documents which were not validated by the present functions. It is not
/// an error: the writer validates them, and tries again.
struct ValidatorsChanged {
  std::string validators;  ///< the present list
};

/// What a function receives: the document and the one that it replaces, as JSON.
struct ValidationCase {
  std::string document;
  std::string replaced;  ///< "null" if there is none
};

/// The case of an edit by a client, or of a replicated revision; nullopt if it is not to be validated: it is
/// a design document, an edit that conflicts, or a revision that is known. Reads a snapshot.
std::optional<ValidationCase> validation_case(kv::Transaction& tx, const Database& database,
                                              const IncomingDocument& document, bool new_edits);

}  // namespace divan::docs
