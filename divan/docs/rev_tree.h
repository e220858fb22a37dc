// The revision tree of a document, as its leaves.
//
// Edits of one document in several places make its history a tree. All of it that matters are the leaves,
// each with the path of identifiers back to its root: a path says which revisions are ancestors (so that an
// edit can name what it replaces, and replication can tell what the other side lacks), and the set of leaves
// says what the conflicts are. So the store keeps one row a leaf and nothing for inner nodes; an edit reads
// the rows of its document, which is one row unless there are conflicts, removes the leaf that it replaces
// and writes the new one.
//
// A path that comes in by replication may be shorter than what is known (the other side keeps fewer
// ancestors), or branch off inside a known path. Two paths belong to one tree where they have the same
// identifier at the same generation; from there back to the root they are the same, and the longer of the two
// is kept.
//
// The winner, which a reader gets who names no revision, is the leaf that is greatest by (not deleted,
// generation, identifier): every replica picks the same one without talking to the others
// (https://docs.couchdb.org/en/stable/replication/conflicts.html).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "divan/docs/revision.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::docs {

/// A revision with its ancestors: `ids` from its own identifier back towards the root; never empty. Entry i
/// has generation `generation - i`.
struct RevisionPath {
  std::uint32_t generation = 0;
  std::vector<std::string> ids;

  Revision revision() const { return {generation, ids.front()}; }
  /// Whether the revision is on this path.
  bool contains(const Revision& revision) const;
  bool operator==(const RevisionPath&) const = default;
};

/// A leaf of the tree. A value type.
struct Leaf {
  RevisionPath path;
  bool deleted = false;
  kv::Versionstamp sequence;  // of its write; its body's key
  std::uint32_t chunks = 0;   // rows of the body; 0: the body is {}
  std::uint64_t body_bytes = 0;

  Revision revision() const { return path.revision(); }
  /// Whether this leaf wins over the other.
  bool beats(const Leaf& other) const;
};

/// A document's leaves, the winner first. Empty: there never was such a document.
using RevTree = std::vector<Leaf>;

/// Sorts leaves so that the winner comes first.
void sort_leaves(RevTree& tree);

/// What adding a revision to a tree does.
struct Merge {
  bool known = false;  // the revision is in the tree already: nothing to do
  // The leaves that it extends, in growing order: one, or several if the path joins what was not known to
  // belong together; none: it is a new branch.
  std::vector<std::size_t> replaces;
  RevisionPath path;  // of the new leaf, completed from what the tree knows
};

/// How the revision `path.revision()`, whose ancestors the path tells as far as its sender knows them, fits
/// into the tree. Paths are cut to `revs_limit` entries (at least 1).
Merge merge(const RevTree& tree, const RevisionPath& path, std::size_t revs_limit);

/// Whether the tree knows the revision, as a leaf or as an ancestor of one.
bool knows(const RevTree& tree, const Revision& revision);

/// The leaf of this revision, with `latest` the first one that came of it; or nothing.
const Leaf* find_leaf(const RevTree& tree, const Revision& revision, bool latest = false);

/// The result of find_leaves().
struct FoundLeaves {
  std::vector<const Leaf*> leaves;  // of the tree that was searched
  std::vector<Revision> missing;
};

/// Returns the leaves of the given revisions in their order; with `latest`, all leaves that descend from them
/// in the tree's order. Each leaf and each missing revision comes once.
FoundLeaves find_leaves(const RevTree& tree, std::span<const Revision> revisions, bool latest);

}  // namespace divan::docs
