#include "sim/database_model.h"

#include <algorithm>

#include "divan/kv/tuple_packer.h"

namespace divan::sim {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

docs::Revision take_revision(Reader& reader) {
  const auto generation = reader.take_int().value();
  return {static_cast<std::uint32_t>(generation), reader.take_bytes().value()};
}

}  // namespace

void note(kv::Transaction& tx, const Edit& edit) {
  std::string key = note_prefix("edit");
  Packer packer(key);
  packer.string(edit.token).integer(edit.database).string(edit.id);
  packer.integer(edit.revision.generation).bytes(edit.revision.id);
  packer.integer(edit.replicated ? 1 : 0).integer(edit.deleted ? 1 : 0).string(edit.body);
  if (edit.parent) packer.integer(edit.parent->generation).bytes(edit.parent->id);
  tx.add(key, 1);
}

void note(kv::Transaction& tx, const Lifecycle& lifecycle) {
  std::string key = note_prefix("database");
  Packer(key)
      .string(lifecycle.token)
      .integer(lifecycle.database)
      .string(lifecycle.name)
      .integer(lifecycle.created ? 1 : 0);
  tx.add(key, 1);
}

std::vector<Edit> edits_of(World& world, const Commit& commit) {
  std::vector<Edit> edits;
  for_each_note(world, commit, "edit", [&](Reader& reader) {
    Edit edit;
    edit.token = reader.take_string().value();
    edit.database = reader.take_int().value();
    edit.id = reader.take_string().value();
    edit.revision = take_revision(reader);
    edit.replicated = reader.take_int().value() == 1;
    edit.deleted = reader.take_int().value() == 1;
    edit.body = reader.take_string().value();
    if (!reader.at_end()) edit.parent = take_revision(reader);
    edits.push_back(std::move(edit));
  });
  return edits;
}

std::vector<Lifecycle> lifecycles_of(World& world, const Commit& commit) {
  std::vector<Lifecycle> lifecycles;
  for_each_note(world, commit, "database", [&](Reader& reader) {
    Lifecycle lifecycle;
    lifecycle.token = reader.take_string().value();
    lifecycle.database = reader.take_int().value();
    lifecycle.name = reader.take_string().value();
    lifecycle.created = reader.take_int().value() == 1;
    lifecycles.push_back(std::move(lifecycle));
  });
  return lifecycles;
}

std::optional<std::string> DocumentModel::apply(const Edit& edit, bool& changed) {
  const auto leaf = [&](const docs::Revision& revision) {
    return std::find_if(tree.begin(), tree.end(),
                        [&](const auto& one) { return one.revision() == revision; });
  };
  changed = !edit.replicated || !known.contains(edit.revision);
  if (!changed) return std::nullopt;
  std::optional<docs::Revision> replaced = edit.parent;
  if (!edit.replicated) {
    if (!replaced && !tree.empty()) {
      if (!tree.front().deleted) return "was written without its revision";
      replaced = tree.front().revision();
    }
    if (replaced && leaf(*replaced) == tree.end()) return "was written over a revision that is no leaf";
    if (edit.revision.generation != (replaced ? replaced->generation : 0) + 1)
      return "has a revision of the wrong generation";
  }
  if (replaced) {
    if (const auto found = leaf(*replaced); found != tree.end()) tree.erase(found);
    known.insert(*replaced);
  }
  docs::Leaf added;
  added.path = {edit.revision.generation, {edit.revision.id}};
  added.deleted = edit.deleted;
  tree.push_back(std::move(added));
  docs::sort_leaves(tree);
  known.insert(edit.revision);
  bodies[edit.revision] = edit.body;
  return std::nullopt;
}

std::int64_t DatabaseModel::count(bool deleted) const {
  return std::count_if(documents.begin(), documents.end(), [&](const auto& entry) {
    return !entry.second.tree.empty() && entry.second.tree.front().deleted == deleted;
  });
}

}  // namespace divan::sim
