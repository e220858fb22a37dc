// The revision tree of a document, represented by its leaves.
//
// Edits of one document on several servers make its history a tree. Only the leaves matter, each with the
// path of identifiers back to its root. A path shows which revisions are ancestors, so that an edit can name
// what it replaces, and replication can find what the other side lacks. The set of leaves shows the
// conflicts. The store therefore has one row for each leaf and none for inner revisions. An edit reads the
// rows of its document (one, unless there are conflicts), removes the leaf that it replaces and writes the
// new one.
//
// A replicated path may be shorter than the known one (the other side stores fewer ancestors), or branch off
// inside a known path. Two paths belong to one tree if they have the same identifier at the same generation;
// from there back to the root they are equal, and the longer one is kept.
//
// The winner, which is returned if a read names no revision, is the leaf that is greatest by (not deleted,
// generation, identifier): every replica selects the same one without coordination
// (https://docs.couchdb.org/en/stable/replication/conflicts.html).
#pragma once

#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "divan/docs/revision.h"
#include "divan/kv/tuple_versionstamp.h"

namespace divan::docs {

/// A revision with its ancestors: `ids` begins with its own identifier and continues towards the root; never
/// empty. Entry i has generation `generation - i`.
struct RevisionPath {
  std::uint32_t generation = 0;
  std::vector<std::string> ids;

  Revision revision() const { return {generation, ids.front()}; }
  /// Returns true if the revision is on this path.
  bool contains(const Revision& revision) const;
  bool operator==(const RevisionPath&) const = default;
};

/// The largest number of old revisions of a leaf, and its default.
inline constexpr std::size_t kMaxOldRevisions = 100;
inline constexpr std::size_t kDefaultMaxOldRevisions = 10;

/// A revision that another one has replaced, and whose body is still stored: until a compaction, or until the
/// document has too many of them (Catalog::max_old_revisions()). A value type.
struct OldRevision {
  std::uint32_t index = 0;  // in the path of the leaf that descends from it; at least 1
  bool deleted = false;
  kv::Versionstamp sequence{};  // of its write; also the key of its body
  std::uint32_t chunks = 0;     // rows of the body; 0: the body is {}
  std::uint64_t body_bytes = 0;
  std::uint32_t attachments = 0;           // number of them in the body
  std::uint64_t own_attachment_bytes = 0;  // of those attachments that its successor does not have

  bool operator==(const OldRevision&) const = default;
};

/// A leaf of the tree. A value type.
struct Leaf {
  RevisionPath path;
  bool deleted = false;
  kv::Versionstamp sequence;  // of its write; also the key of its body
  std::uint32_t chunks = 0;   // rows of the body; 0: the body is {}
  std::uint64_t body_bytes = 0;
  std::uint32_t attachments = 0;   // number of them in the body
  std::vector<OldRevision> old{};  // its ancestors whose bodies are stored, the latest first
  // The sequence of the write since which the document exists without having been deleted; of a deleted leaf:
  // since which it had existed. Its own sequence if it did not exist before; zero in rows of older versions
  // that do not tell.
  kv::Versionstamp exists_since{};

  Revision revision() const { return path.revision(); }
  /// An ancestor in the form of a leaf.
  Leaf ancestor(const OldRevision& revision) const;
  /// Returns true if this leaf wins over the other.
  bool wins_over(const Leaf& other) const;
};

/// A document's leaves, the winner first. Empty if the document never existed.
using RevTree = std::vector<Leaf>;

/// Sorts leaves so that the winner comes first.
void sort_leaves(RevTree& tree);

/// The effect of adding a revision to a tree.
struct Merge {
  bool known = false;  // the revision is already in the tree: no effect
  // The indexes of the leaves that it extends, ascending. Usually one; several if the path joins branches
  // that were not known to be related; none if it begins a new branch.
  std::vector<std::size_t> replaces;
  RevisionPath path;  // of the new leaf, with the ancestors that the tree knows
};

/// Computes the effect of adding `path.revision()`, with the ancestors that its sender knows, to the tree.
/// Paths are truncated to `revs_limit` entries (at least 1).
Merge merge(const RevTree& tree, const RevisionPath& path, std::size_t revs_limit);

/// Returns true if the tree contains the revision, as a leaf or as an ancestor of one.
bool knows(const RevTree& tree, const Revision& revision);

/// The generation of the latest revision on the path that is one of `known`; 0 if none is.
std::uint32_t latest_known_generation(const RevisionPath& path, std::span<const Revision> known);

/// Returns the revision, in the form of a leaf, if it is an ancestor whose body is stored.
std::optional<Leaf> find_old_revision(const RevTree& tree, const Revision& revision);

/// Returns the leaf with this revision, or with `latest` the first one that descends from it; null if there
/// is none.
const Leaf* find_leaf(const RevTree& tree, const Revision& revision, bool latest = false);

/// The sizes of old revisions.
struct OldSizes {
  std::int64_t bodies = 0;       // bytes
  std::int64_t attachments = 0;  // bytes of their attachments that their successors do not have

  /// Adds one. Sums of damaged rows do not overflow.
  void add(const OldRevision& old);
};
OldSizes old_sizes(const RevTree& tree);

/// The result of find_revisions().
struct RevisionSelection {
  std::vector<const Leaf*> found;  // point into the tree that was searched, or to `old`
  std::list<Leaf> old;
  std::vector<Revision> missing;
};

/// Returns the given revisions that are leaves, or ancestors whose bodies are stored, in their order; with
/// `latest`, all leaves that descend from them, in the tree's order. Each found and each missing revision
/// occurs once.
RevisionSelection find_revisions(const RevTree& tree, std::span<const Revision> revisions, bool latest);

}  // namespace divan::docs
