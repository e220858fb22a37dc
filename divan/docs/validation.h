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

/// The functions that have validated documents: the list of a database.
struct Validators {
  std::string list{};
  std::int64_t database = 0;  ///< its number
};

/// That these functions accept a document, if it replaces this leaf; nullopt: none.
struct Acceptance {
  std::optional<Revision> replaced;
};

/// What became of a document that was to be validated.
struct Verdict {
  std::optional<Error> error{};  ///< it was refused
  /// nullopt without an error: it was not validated, since it conflicted or was known. If it can be written
  /// after all, it must be validated before.
  std::optional<Acceptance> acceptance{};
};

/// Thrown by a transaction that writes documents which the present functions have not accepted as they are
/// written. It is not an error: the writer validates them, and tries again.
struct NotValidated {
  bool list_changed = false;  ///< other functions validate the database now: no document is accepted
};

/// What a function receives: the document and the one that it replaces, as JSON.
struct ValidationCase {
  std::string document;
  std::string replaced_document;  ///< "null" if there is none
  Acceptance acceptance;          ///< if the functions accept it
};

/// The leaf that an edit replaces for a function: the one that it replaces (edited_leaf()), unless that is
/// deleted; null if there is none.
inline const Leaf* replaced_by_edit(const Leaf* edited) {
  return edited != nullptr && !edited->deleted ? edited : nullptr;
}
/// The same for a replicated revision: the newest leaf from which it descends.
const Leaf* replaced_by_replication(const RevTree& tree, const RevisionPath& path);

/// The case of an edit by a client, or of a replicated revision; nullopt if it is not to be validated: it is
/// a design document, an edit that conflicts, or a revision that is known. Reads a snapshot.
std::optional<ValidationCase> validation_case(kv::Transaction& tx, const Database& database,
                                              const IncomingDocument& document, bool new_edits);

}  // namespace divan::docs
