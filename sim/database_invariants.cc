#include "sim/database_invariants.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/docs/reader.h"
#include "divan/kv/tuple_packer.h"

namespace divan::sim {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

kv::Version version_of(const kv::Versionstamp& stamp) {
  return static_cast<kv::Version>(read_u64(stamp.bytes()));
}

}  // namespace

DatabaseInvariants::DatabaseInvariants(Engine& engine, const Clock& clock)
    : engine_(engine), world_(engine.world), catalog_(bus_, clock) {}

void DatabaseInvariants::check(const Commit& commit, const Rows& rows) {
  std::set<std::int64_t> touched;
  for (const auto& change : commit.changes) {
    if (const auto number = docs::database_number(change.key)) touched.insert(*number);
  }
  for (const auto& lifecycle : lifecycles_of(world_, commit)) begin_or_end(lifecycle, commit);
  std::map<std::int64_t, std::set<std::string>> edited;
  for (const auto& edit : edits_of(world_, commit)) {
    done_.insert(edit.token);
    touched.insert(edit.database);
    const auto database = databases_.find(edit.database);
    if (database == databases_.end())
      return world_.fail(fmt::format("Document {} was written to a deleted database.", edit.id));
    DatabaseModel& model = database->second;
    bool changed = false;
    const auto wrong = model.documents[edit.id].apply(edit, changed);
    world_.trace(fmt::format("  {}/{} {} ({}){}", model.name, edit.id, edit.revision.to_string(), edit.token,
                             changed ? "" : ": known"));
    if (wrong) return world_.fail(fmt::format("Document {}/{} {}.", model.name, edit.id, *wrong));
    if (!changed) continue;
    edited[edit.database].insert(edit.id);
    events_[model.name].updated = commit.version;
  }
  for (const auto& [name, events] : events_) check_feed(name, events, rows);
  if (touched.empty()) return;
  const auto tx = engine_.database().begin();
  for (const auto number : touched) {
    if (databases_.contains(number)) {
      check_database(number, edited[number], commit, *tx);
    } else if (ended_.contains(number)) {
      const auto prefix = docs::DatabaseKeys(number).prefix();
      const auto row = rows.lower_bound(prefix);
      if (row != rows.end() && row->first.starts_with(prefix))
        world_.fail(fmt::format("Database {} was deleted, and has rows.", number));
    }
  }
}

void DatabaseInvariants::begin_or_end(const Lifecycle& lifecycle, const Commit& commit) {
  done_.insert(lifecycle.token);
  world_.trace(fmt::format("  {} {} as {} ({})", lifecycle.name, lifecycle.created ? "created" : "deleted",
                           lifecycle.database, lifecycle.token));
  Events& events = events_[lifecycle.name];
  if (lifecycle.created) {
    for (const auto& [number, model] : databases_) {
      if (model.name == lifecycle.name)
        return world_.fail(fmt::format("Database {} was created twice.", lifecycle.name));
    }
    if (ended_.contains(lifecycle.database) || databases_.contains(lifecycle.database))
      return world_.fail(fmt::format("Database {} got the number of another one.", lifecycle.name));
    databases_[lifecycle.database].name = lifecycle.name;
    events.created = events.updated = commit.version;
  } else {
    if (databases_.erase(lifecycle.database) == 0)
      return world_.fail(fmt::format("Database {} was deleted twice.", lifecycle.name));
    ended_.insert(lifecycle.database);
    events.deleted = commit.version;
  }
}

// The commit moved exactly the documents that it edited to the end of the changes.
void DatabaseInvariants::check_database(std::int64_t number, const std::set<std::string>& edited,
                                        const Commit& commit, kv::Transaction& tx) {
  DatabaseModel& model = databases_.at(number);
  const auto database = open(number);
  std::set<std::string> moved;
  docs::visit_changes(tx, database, model.last, [&](const docs::Change& change) {
    moved.insert(change.id);
    DocumentModel& document = model.documents[change.id];
    if (change.sequence.transaction_version() != commit.stamp)
      world_.fail(fmt::format("Document {}/{} changed without a commit of its own.", model.name, change.id));
    if (!document.tree.empty() && (document.tree.front().revision() != change.winner ||
                                   document.tree.front().deleted != change.deleted))
      world_.fail(fmt::format("Document {}/{}: its change shows {}, but {} wins.", model.name, change.id,
                              change.winner.to_string(), document.tree.front().revision().to_string()));
    document.sequence = std::max(document.sequence, change.sequence);
    return true;
  });
  if (moved != edited)
    world_.fail(fmt::format("{} documents of {} are new among its changes, but {} were edited.", moved.size(),
                            model.name, edited.size()));
  for (const auto& id : edited) {
    model.last = std::max(model.last, model.documents[id].sequence);
    check_document(tx, database, id, model.documents[id]);
  }
  const auto info = docs::read_info(tx, database);
  if (info.doc_count != model.count(false) || info.doc_del_count != model.count(true))
    world_.fail(fmt::format("{} counts {} documents and {} deleted ones, but has {} and {}.", model.name,
                            info.doc_count, info.doc_del_count, model.count(false), model.count(true)));
  // One row for each document: the old row of a document that was moved must be gone.
  const std::int64_t rows = docs::count_changes(tx, database, {}, INT64_MAX);
  if (rows != model.count(false) + model.count(true))
    world_.fail(
        fmt::format("{} has {} rows of changes for {} documents.", model.name, rows, model.documents.size()));
}

void DatabaseInvariants::check_document(kv::Transaction& tx, const docs::Database& database,
                                        const std::string& id, const DocumentModel& model) {
  const auto tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
  const auto same = [](const docs::Leaf& a, const docs::Leaf& b) {
    return a.revision() == b.revision() && a.deleted == b.deleted;
  };
  if (!std::equal(tree.begin(), tree.end(), model.tree.begin(), model.tree.end(), same))
    world_.fail(fmt::format(
        "Document {}/{} has {} leaves, of which {} wins, instead of {}, of which {} does.", database.name(),
        id, tree.size(), tree.empty() ? "none" : tree.front().revision().to_string(), model.tree.size(),
        model.tree.front().revision().to_string()));
  for (const auto& leaf : tree) {
    if (docs::read_body(tx, database, leaf) != model.bodies.at(leaf.revision()))
      world_.fail(fmt::format("Document {}/{}: the body of {} is another one.", database.name(), id,
                              leaf.revision().to_string()));
  }
}

// Each update has a later row of the feed, or a mark, which the sequencer turns into one. Keys are those of
// docs/keyspace.md.
void DatabaseInvariants::check_feed(const std::string& name, const Events& events, const Rows& rows) {
  std::string key;
  Packer(key).string("updates").string("row").string(name).string("updated");
  const auto row = rows.find(key);
  const kv::Version updated =
      row == rows.end() ? 0 : version_of(Reader(row->second).take_versionstamp().value());
  const bool exists = std::any_of(databases_.begin(), databases_.end(),
                                  [&](const auto& database) { return database.second.name == name; });
  if (!exists) {
    if (updated > events.deleted)
      world_.fail(fmt::format("The feed shows an update of {} after its deletion.", name));
    return;
  }
  if (updated >= events.updated) return;
  std::string mark;
  Packer packer(mark);
  packer.string("updates").string("dirty").integer(0).string(name);
  if (rows.contains(mark)) return;
  packer.string("updated");
  const auto shared = rows.lower_bound(mark);
  if (shared == rows.end() || !shared->first.starts_with(mark))
    world_.fail(fmt::format("An update of {} has neither a row of the feed nor a mark.", name));
}

void DatabaseInvariants::compare(const std::string& token, std::optional<bool> result) {
  const bool truth = done_.contains(token);
  if (!result) {
    world_.count(truth ? "outcome unknown: was committed" : "outcome unknown: was not");
  } else if (*result != truth) {
    world_.fail(fmt::format("({}) was {}done, and its client got the result that it was {}done.", token,
                            truth ? "" : "not ", *result ? "" : "not "));
  }
}

void DatabaseInvariants::check_reader(const ChangesReader& reader, std::string_view name,
                                      kv::Version version) {
  const auto database = databases_.find(reader.database);
  if (database == databases_.end()) return;  // deleted since then
  for (const auto& [id, document] : database->second.documents) {
    if (version_of(document.sequence) > version) continue;
    const auto known = reader.documents.find(id);
    if (known == reader.documents.end() || known->second.sequence != document.sequence)
      return world_.fail(fmt::format("A reader of the changes of {} has missed {}'s last one.", name, id));
    if (known->second.winner != document.tree.front().revision())
      return world_.fail(fmt::format("A reader of the changes of {} has another winner of {}.", name, id));
  }
}

void DatabaseInvariants::check_body(std::int64_t database, const docs::Change& change,
                                    std::string_view body) {
  const auto model = databases_.find(database);
  if (model == databases_.end()) return;
  const auto& bodies = model->second.documents.at(change.id).bodies;
  if (const auto known = bodies.find(change.winner); known == bodies.end() || known->second != body)
    world_.fail(fmt::format("A reader got a body of {}/{} {} that was not written.", model->second.name,
                            change.id, change.winner.to_string()));
}

std::optional<std::string> DatabaseInvariants::missing_of(const FeedReader& reader) const {
  const auto seen = [&](const std::string& database, const std::string& kind) {
    const auto row = reader.rows.find({database, kind});
    return row == reader.rows.end() ? 0 : version_of(row->second);
  };
  for (const auto& [name, events] : events_) {
    const auto missing = [&, name = name](std::string_view kind) {
      return fmt::format("{} of {}", kind, name);
    };
    if (seen(name, "created") != events.created) return missing("created");
    if (seen(name, "deleted") != events.deleted) return missing("deleted");
    if (events.deleted > events.updated) {
      // No update may be shown after the deletion.
      if (seen(name, "updated") > events.deleted) return missing("no update");
    } else if (seen(name, "updated") < events.updated) {
      return missing("updated");
    }
  }
  return std::nullopt;
}

}  // namespace divan::sim
