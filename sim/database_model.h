// Models of databases: the expected contents after the committed edits, by the documented rules.
#pragma once

#include <set>

#include "divan/docs/changes.h"
#include "divan/docs/rev_tree.h"
#include "sim/observer.h"

namespace divan::sim {

/// One write of a document. The edits of a transaction share its token.
struct Edit {
  std::string token{};
  std::int64_t database = 0;  // its number
  std::string id{};
  docs::Revision revision{};               // the new one
  std::optional<docs::Revision> parent{};  // as the client names it
  bool replicated = false;                 // "new_edits": false
  bool deleted = false;
  std::string body{};
};

/// A database that was created or deleted.
struct Lifecycle {
  std::string token{};
  std::int64_t database = 0;
  std::string name{};
  bool created = false;  // else deleted
};

/// Records what a transaction does: as a counter, whose key encodes all of it.
void note(kv::Transaction& tx, const Edit& edit);
void note(kv::Transaction& tx, const Lifecycle& lifecycle);

/// What a commit recorded.
std::vector<Edit> edits_of(World& world, const Commit& commit);
std::vector<Lifecycle> lifecycles_of(World& world, const Commit& commit);

struct DocumentModel {
  docs::RevTree tree;  // of each leaf the revision and `deleted` only
  std::set<docs::Revision> known;
  std::map<docs::Revision, std::string> bodies;  // of all revisions that ever were leaves
  kv::Versionstamp sequence;                     // of its last change

  /// Returns the reason if the edit must not have been possible. `changed`: it added a new revision.
  std::optional<std::string> apply(const Edit& edit, bool& changed);
};

struct DatabaseModel {
  std::string name;
  std::map<std::string, DocumentModel> documents;
  kv::Versionstamp last;  // sequence of the last change

  std::int64_t count(bool deleted) const;
};

}  // namespace divan::sim
