#include "divan/docs/rev_tree.h"

#include <algorithm>

#include "divan/base/check.h"

namespace divan::docs {
namespace {

// The tail of `known` from `generation` on, if it has `id` there; otherwise empty.
std::span<const std::string> tail_from(const RevisionPath& known, std::uint32_t generation,
                                       std::string_view id) {
  if (generation > known.generation) return {};
  const std::size_t index = known.generation - generation;
  if (index >= known.ids.size() || known.ids[index] != id) return {};
  return std::span(known.ids).subspan(index);
}

// Adds the ancestors that `known` has and `path` lacks, if the two meet.
void complete(RevisionPath& path, const RevisionPath& known) {
  DIVAN_CHECK(!path.ids.empty() && path.ids.size() <= path.generation, "{} revisions up to generation {}",
              path.ids.size(), path.generation);
  const auto oldest = static_cast<std::uint32_t>(path.generation - (path.ids.size() - 1));
  const auto tail = tail_from(known, oldest, path.ids.back());
  if (tail.size() > 1) path.ids.insert(path.ids.end(), tail.begin() + 1, tail.end());
}

}  // namespace

bool RevisionPath::contains(const Revision& revision) const {
  return !tail_from(*this, revision.generation, revision.id).empty();
}

bool Leaf::wins_over(const Leaf& other) const {
  if (deleted != other.deleted) return other.deleted;
  return revision() > other.revision();
}

Leaf Leaf::ancestor(const OldRevision& revision) const {
  DIVAN_CHECK(revision.index > 0 && revision.index < path.ids.size(), "ancestor {} of {}", revision.index,
              path.ids.size());
  Leaf found;
  found.path.generation = path.generation - revision.index;
  found.path.ids.assign(path.ids.begin() + revision.index, path.ids.end());
  found.deleted = revision.deleted;
  found.sequence = revision.sequence;
  found.chunks = revision.chunks;
  found.body_bytes = revision.body_bytes;
  found.attachments = revision.attachments;
  for (OldRevision before : old) {
    if (before.index <= revision.index) continue;
    before.index -= revision.index;
    found.old.push_back(before);
  }
  return found;
}

void sort_leaves(RevTree& tree) {
  std::sort(tree.begin(), tree.end(), [](const Leaf& a, const Leaf& b) { return a.wins_over(b); });
}

Merge merge(const RevTree& tree, const RevisionPath& path, std::size_t revs_limit) {
  DIVAN_CHECK(revs_limit > 0, "a document would lose its revision");
  Merge result;
  result.path = path;
  if (knows(tree, path.revision())) {
    result.known = true;
    return result;
  }
  for (std::size_t i = 0; i < tree.size(); ++i) {
    if (path.contains(tree[i].revision())) result.replaces.push_back(i);
    complete(result.path, tree[i].path);
  }
  DIVAN_CHECK(result.path.ids.size() >= path.ids.size() && result.path.ids.size() <= path.generation,
              "{} revisions up to generation {} were {}", result.path.ids.size(), path.generation,
              path.ids.size());
  if (result.path.ids.size() > revs_limit) result.path.ids.resize(revs_limit);
  return result;
}

bool knows(const RevTree& tree, const Revision& revision) {
  return std::any_of(tree.begin(), tree.end(),
                     [&](const Leaf& leaf) { return leaf.path.contains(revision); });
}

std::uint32_t latest_known_generation(const RevisionPath& path, std::span<const Revision> known) {
  std::uint32_t latest = 0;
  for (const auto& revision : known) {
    if (path.contains(revision)) latest = std::max(latest, revision.generation);
  }
  return latest;
}

std::optional<Leaf> find_old_revision(const RevTree& tree, const Revision& revision) {
  for (const Leaf& leaf : tree) {
    if (leaf.old.empty() || !leaf.path.contains(revision)) continue;
    const std::uint32_t index = leaf.path.generation - revision.generation;
    const auto found = std::ranges::find(leaf.old, index, &OldRevision::index);
    if (found != leaf.old.end()) return leaf.ancestor(*found);
  }
  return std::nullopt;
}

void OldSizes::add(const OldRevision& old) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  bodies = std::min(bodies + static_cast<std::int64_t>(old.body_bytes), kMost);
  attachments = std::min(attachments + static_cast<std::int64_t>(old.own_attachment_bytes), kMost);
}

OldSizes old_sizes(const RevTree& tree) {
  OldSizes sizes;
  for (const Leaf& leaf : tree) {
    for (const OldRevision& old : leaf.old) sizes.add(old);
  }
  return sizes;
}

const Leaf* find_leaf(const RevTree& tree, const Revision& revision, bool latest) {
  const auto it = std::find_if(tree.begin(), tree.end(), [&](const Leaf& leaf) {
    return latest ? leaf.path.contains(revision) : leaf.revision() == revision;
  });
  return it == tree.end() ? nullptr : &*it;
}

RevisionSelection find_revisions(const RevTree& tree, std::span<const Revision> revisions, bool latest) {
  RevisionSelection selection;
  const auto add_once = [](auto& list, const auto& value) {
    if (std::ranges::find(list, value) == list.end()) list.push_back(value);
  };
  const auto is_selected = [&](const Revision& revision) {
    return std::ranges::any_of(selection.old, [&](const Leaf& old) { return old.revision() == revision; });
  };
  for (const auto& revision : revisions) {
    const Leaf* leaf = find_leaf(tree, revision, latest);
    if (leaf != nullptr) {
      if (!latest) add_once(selection.found, leaf);
    } else if (auto old = latest ? std::nullopt : find_old_revision(tree, revision)) {
      if (is_selected(revision)) continue;
      selection.old.push_back(*std::move(old));
      selection.found.push_back(&selection.old.back());
    } else {
      add_once(selection.missing, revision);
    }
  }
  if (!latest) return selection;
  for (const auto& leaf : tree) {
    const auto descends = [&](const Revision& revision) { return leaf.path.contains(revision); };
    if (std::ranges::any_of(revisions, descends)) selection.found.push_back(&leaf);
  }
  return selection;
}

}  // namespace divan::docs
