// Revisions of a document in any order give one tree. The input is a tree, and revisions of it that arrive
// with all of their ancestors, one after the other; the reference is the set of all revisions, without regard
// to order.
#include <algorithm>
#include <set>

#include "divan/docs/rev_tree.h"
#include "fuzz/check.h"

namespace {

namespace docs = divan::docs;
using divan::fuzz::check;

constexpr std::size_t kLimit = 100;  // more than the generations

// Every revision of the input's tree, as a path to its root. Identifiers may repeat at different generations.
std::vector<docs::RevisionPath> take_revisions(std::string_view& code) {
  std::vector<docs::RevisionPath> revisions;
  std::set<std::pair<std::uint32_t, std::string>> used;
  const std::size_t count = std::min<std::size_t>(code.size() / 2, 20);
  for (std::size_t i = 0; i < count; ++i) {
    const auto parent = static_cast<unsigned char>(code[2 * i]);
    docs::RevisionPath path;
    if (!revisions.empty() && parent % 8 != 0) path = revisions[parent % revisions.size()];
    ++path.generation;
    path.ids.insert(path.ids.begin(), std::string(1, code[2 * i + 1]));
    if (used.emplace(path.generation, path.ids.front()).second) revisions.push_back(std::move(path));
  }
  code.remove_prefix(2 * count);
  return revisions;
}

// The leaves, sorted.
std::vector<docs::RevisionPath> merge_all(const std::vector<docs::RevisionPath>& arriving) {
  docs::RevTree tree;
  for (const auto& path : arriving) {
    const auto merged = docs::merge(tree, path, kLimit);
    check(merged.known == docs::knows(tree, path.revision()));
    if (merged.known) continue;
    for (auto replaced = merged.replaces.rbegin(); replaced != merged.replaces.rend(); ++replaced)
      tree.erase(tree.begin() + static_cast<std::ptrdiff_t>(*replaced));
    tree.push_back({.path = merged.path});
    docs::sort_leaves(tree);
  }
  for (std::size_t i = 1; i < tree.size(); ++i) check(!tree[i].wins_over(tree[i - 1]));
  std::vector<docs::RevisionPath> leaves;
  for (auto& leaf : tree) leaves.push_back(std::move(leaf.path));
  return leaves;
}

// Those that no other one descends from, the winner first.
std::vector<docs::RevisionPath> reference(std::vector<docs::RevisionPath> arrived) {
  std::vector<docs::RevisionPath> leaves;
  for (const auto& path : arrived) {
    const bool has_descendant = std::ranges::any_of(arrived, [&](const docs::RevisionPath& other) {
      return other.generation > path.generation && other.contains(path.revision());
    });
    if (!has_descendant && std::ranges::find(leaves, path) == leaves.end()) leaves.push_back(path);
  }
  std::ranges::sort(leaves, [](const docs::RevisionPath& a, const docs::RevisionPath& b) {
    return std::pair(a.generation, a.ids.front()) > std::pair(b.generation, b.ids.front());
  });
  return leaves;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string_view code = divan::fuzz::text_of(data, size);
  const auto revisions = take_revisions(code);
  if (revisions.empty()) return 0;
  std::vector<docs::RevisionPath> arriving;
  for (const char byte : code.substr(0, 20))
    arriving.push_back(revisions[static_cast<unsigned char>(byte) % revisions.size()]);
  const auto expected = reference(arriving);
  check(merge_all(arriving) == expected);
  check(merge_all({arriving.rbegin(), arriving.rend()}) == expected);
  std::ranges::sort(arriving, {}, [](const docs::RevisionPath& path) { return path.ids; });
  check(merge_all(arriving) == expected);
  return 0;
}
