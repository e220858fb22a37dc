#include "divan/docs/rev_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace divan::docs {
namespace {

Leaf leaf(std::uint32_t generation, std::vector<std::string> ids, bool deleted = false) {
  Leaf leaf;
  leaf.path = {generation, std::move(ids)};
  leaf.deleted = deleted;
  return leaf;
}

constexpr std::size_t kLimit = 1000;

TEST(Revision, ReadsAndPrints) {
  EXPECT_EQ(parse_revision("1-967A00DFF5E02ADD41819138ABB3284D").to_string(),
            "1-967a00dff5e02add41819138abb3284d");
  EXPECT_EQ(parse_revision("12-abc").to_string(), "12-abc");
  for (const std::string_view text : {"", "1", "-", "-a", "x-a", "1a-b", "-1-a", "99999999999-a"}) {
    EXPECT_FALSE(Revision::parse(text)) << text;
  }
  EXPECT_LT(parse_revision("2-b"), parse_revision("10-a"));
  // As CouchDB parses it.
  EXPECT_EQ(parse_revision("1-").to_string(), "1-");
}

TEST(Revision, IdsAreDigestsOfTheContent) {
  const auto parent = parse_revision("1-a");
  const auto id = revision_id(false, parent, "{}");
  EXPECT_EQ(id.size(), 16u);
  EXPECT_EQ(id, revision_id(false, parent, "{}"));
  EXPECT_NE(id, revision_id(true, parent, "{}"));
  EXPECT_NE(id, revision_id(false, std::nullopt, "{}"));
  EXPECT_NE(id, revision_id(false, parent, "{\"a\":1}"));
}

TEST(RevTree, TheWinnerIsLiveThenLongestThenGreatest) {
  RevTree tree = {leaf(9, {"z"}, true), leaf(2, {"b"}), leaf(3, {"a"}), leaf(3, {"c"})};
  sort_leaves(tree);
  std::string order;
  for (const auto& l : tree) order += l.revision().to_string() + " ";
  EXPECT_EQ(order, "3-c 3-a 2-b 9-z ");
}

TEST(RevTree, AnExtensionReplacesItsLeafAndKeepsItsAncestors) {
  const RevTree tree = {leaf(2, {"b", "a"}), leaf(2, {"x", "a"})};
  const auto merged = merge(tree, {3, {"c", "b"}}, kLimit);
  EXPECT_FALSE(merged.known);
  EXPECT_EQ(merged.replaces, std::vector<std::size_t>{0});
  EXPECT_EQ(merged.path, (RevisionPath{3, {"c", "b", "a"}}));
}

TEST(RevTree, SkippedGenerationsAreStillAnExtension) {
  const auto merged = merge({leaf(1, {"a"})}, {4, {"d", "c", "b", "a"}}, kLimit);
  EXPECT_EQ(merged.replaces, std::vector<std::size_t>{0});
  EXPECT_EQ(merged.path.ids.size(), 4u);
}

TEST(RevTree, ABranchGetsTheAncestorsItLacks) {
  const auto merged = merge({leaf(3, {"c", "b", "a"})}, {3, {"x", "b"}}, kLimit);
  EXPECT_TRUE(merged.replaces.empty());
  EXPECT_EQ(merged.path, (RevisionPath{3, {"x", "b", "a"}}));
}

TEST(RevTree, LeavesAndAncestorsAreKnown) {
  const RevTree tree = {leaf(3, {"c", "b", "a"})};
  EXPECT_TRUE(merge(tree, {3, {"c"}}, kLimit).known);
  EXPECT_TRUE(merge(tree, {1, {"a"}}, kLimit).known);
  EXPECT_FALSE(merge(tree, {2, {"a"}}, kLimit).known);
  EXPECT_FALSE(merge(tree, {3, {"a"}}, kLimit).known);
}

TEST(RevTree, AnUnrelatedRevisionIsASeparateBranch) {
  const auto merged = merge({leaf(2, {"b", "a"})}, {1, {"z"}}, kLimit);
  EXPECT_FALSE(merged.known);
  EXPECT_TRUE(merged.replaces.empty());
}

TEST(RevTree, PathsAreTruncatedToTheLimit) {
  EXPECT_EQ(merge({leaf(3, {"c", "b", "a"})}, {4, {"d", "c"}}, 2).path, (RevisionPath{4, {"d", "c"}}));
}

// r has the children a and b, and a has c and d.
TEST(RevTree, FindsLeavesOnce) {
  const RevTree tree = {leaf(3, {"d", "a", "r"}), leaf(3, {"c", "a", "r"}), leaf(2, {"b", "r"})};
  const auto found = [&](const std::vector<std::string_view>& wanted, bool latest) {
    std::vector<Revision> revisions;
    for (const auto text : wanted) revisions.push_back(parse_revision(text));
    const auto result = find_revisions(tree, revisions, latest);
    std::string text;
    for (const Leaf* one : result.found) text += one->revision().to_string() + " ";
    for (const auto& missing : result.missing) text += "!" + missing.to_string() + " ";
    return text;
  };
  EXPECT_EQ(found({"2-b", "3-d", "2-b"}, false), "2-b 3-d ");
  EXPECT_EQ(found({"1-r", "9-z", "1-r", "9-z"}, false), "!1-r !9-z ");
  EXPECT_EQ(found({"1-r"}, true), "3-d 3-c 2-b ");
  EXPECT_EQ(found({"2-a", "1-r", "3-c"}, true), "3-d 3-c 2-b ");
  EXPECT_EQ(found({"2-a", "9-z"}, true), "3-d 3-c !9-z ");
  EXPECT_EQ(found({"2-b"}, true), "2-b ");
  EXPECT_EQ(found({}, true), "");
}

// A slow reference model: the whole tree as a set of revisions with their parents.
struct Node {
  Revision revision;
  std::optional<Revision> parent;
  auto operator<=>(const Node&) const = default;
};

RC_GTEST_PROP(RevTree, MatchesTheReferenceModel, ()) {
  // A random history, of which random paths (whole or truncated) arrive in random order.
  std::vector<std::vector<std::string>> branches = {{"r"}};
  const int extra = *rc::gen::inRange(1, 12);
  for (int i = 0; i < extra; ++i) {
    const std::size_t from = *rc::gen::inRange<std::size_t>(0, branches.size());
    const std::size_t length = *rc::gen::inRange<std::size_t>(1, branches[from].size() + 1);
    auto branch =
        std::vector(branches[from].begin(), branches[from].begin() + static_cast<std::ptrdiff_t>(length));
    branch.push_back("n" + std::to_string(i));
    branches.push_back(branch);
  }
  RevTree tree;
  std::set<Revision> arrived;
  for (int i = *rc::gen::inRange(1, 15); i > 0; --i) {
    auto branch = branches[*rc::gen::inRange<std::size_t>(0, branches.size())];
    const auto generation = static_cast<std::uint32_t>(branch.size());
    RevisionPath path{generation, {branch.rbegin(), branch.rend()}};
    const auto merged = merge(tree, path, kLimit);
    for (std::uint32_t g = 1; g <= generation; ++g) arrived.insert({g, branch[g - 1]});
    if (merged.known) continue;
    for (auto it = merged.replaces.rbegin(); it != merged.replaces.rend(); ++it) {
      tree.erase(tree.begin() + static_cast<std::ptrdiff_t>(*it));
    }
    Leaf added;
    added.path = merged.path;
    tree.push_back(added);
  }
  // Everything that arrived is known; the leaves are those without descendants.
  for (const auto& revision : arrived) RC_ASSERT(knows(tree, revision));
  std::set<Revision> leaves;
  for (const auto& l : tree) leaves.insert(l.revision());
  RC_ASSERT(leaves.size() == tree.size());
  std::set<Revision> expected = arrived;
  for (const auto& branch : branches) {
    for (std::uint32_t g = 1; g < branch.size(); ++g) {
      if (arrived.contains({g + 1, branch[g]})) expected.erase({g, branch[g - 1]});
    }
  }
  RC_ASSERT(leaves == expected);
}

}  // namespace
}  // namespace divan::docs
