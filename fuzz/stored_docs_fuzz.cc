// Rows of a database of arbitrary bytes: leaves, changes, bodies with attachments, local documents, the
// catalog's record. The first byte selects the section of the rows; keys (after the section) and values
// follow alternately.
#include "divan/base/json.h"
#include "divan/docs/changes.h"
#include "divan/docs/contents.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/local.h"
#include "divan/docs/reader.h"
#include "fuzz/stored_rows.h"

namespace {

namespace docs = divan::docs;
using divan::fuzz::check;
using divan::fuzz::reads;

struct Store {
  divan::SystemClock clock;
  divan::events::Bus bus;
  docs::Catalog catalog{bus, clock};
  docs::Database database{catalog, "db", 5, 0};
};

void check_leaf(const docs::Leaf& leaf) {
  // Encoding the parsed row gives the same bytes.
  std::string key;
  divan::kv::tuple::Packer(key)
      .integer(leaf.deleted ? 0 : 1)
      .integer(leaf.path.generation)
      .bytes(leaf.path.ids.front());
  const docs::Leaf again = docs::decode_leaf(divan::kv::tuple::Reader(key), docs::encode_leaf(leaf));
  check(again.path == leaf.path && again.sequence == leaf.sequence && again.chunks == leaf.chunks);
  check(again.deleted == leaf.deleted && again.body_bytes == leaf.body_bytes);
  check(again.attachments == leaf.attachments && again.old == leaf.old);
  for (const auto& old : leaf.old)
    check(docs::find_old_revision({leaf}, leaf.ancestor(old).revision()).has_value());
  for (std::size_t i = 0; i < leaf.path.ids.size(); ++i) {
    check(leaf.path.contains({static_cast<std::uint32_t>(leaf.path.generation - i), leaf.path.ids[i]}));
  }
}

void read_documents(divan::fuzz::Rows& rows, const docs::Database& database, bool descending) {
  docs::DocumentRange range;
  range.descending = descending;
  docs::visit_documents(rows, database, range, [&](const std::string& id, const docs::Leaf& winner) {
    check(!winner.deleted);
    reads([&] {
      const auto tree = docs::read_tree(rows, database, id, divan::kv::Isolation::snapshot);
      check(!tree.empty());
      for (const auto& leaf : tree) check_leaf(leaf);
      const auto body = docs::read_body(rows, database, winner);
      check(body == "{}" || winner.chunks > 0);
      auto sorted = tree;
      docs::sort_leaves(sorted);
      const auto merged = docs::merge(tree, sorted.front().path, 3);
      check(merged.known);
      std::string json;
      docs::append_document(json, id, winner, "{}", tree, {true, true, true, true, true});
      check(json.ends_with('}'));
    });
    return true;
  });
}

void read_changes(divan::fuzz::Rows& rows, const docs::Database& database) {
  std::vector<docs::Change> changes, backwards;
  const auto into = [](std::vector<docs::Change>& list) {
    return [&list](const docs::Change& change) {
      list.push_back(change);
      return true;
    };
  };
  docs::visit_changes(rows, database, {}, into(changes));
  docs::visit_changes_backwards(rows, database, {}, std::nullopt, into(backwards));
  check(changes.size() == backwards.size());
  check(docs::count_changes(rows, database, {}, 1000) == static_cast<std::int64_t>(changes.size()));
  if (!changes.empty()) check(docs::last_sequence(rows, database) == changes.back().sequence);
  check(docs::read_bodies(rows, database, changes, 1 << 20).size() <= changes.size());
}

void read_locals(divan::fuzz::Rows& rows, const docs::Database& database) {
  std::vector<std::string> ids;
  docs::visit_locals(rows, database, {}, [&](const std::string& id, const docs::LocalDocument&) {
    check(id.starts_with(docs::kLocalPrefix) && divan::is_utf8(id));
    ids.push_back(id);
    return true;
  });
  for (const auto& id : ids) {
    const auto document = docs::read_local(rows, database, id);
    check(document.has_value());
    docs::IncomingDocument incoming;
    incoming.id = id;
    incoming.body = "{}";
    incoming.revision = docs::Revision::parse("0-" + std::to_string(document->revision));
    const auto revision = docs::write_local(rows, database, incoming);
    check(docs::read_local(rows, database, id)->revision == revision && revision > document->revision);
  }
}

void read_attachments(std::string_view body) {
  reads([&] { docs::decode_content(body); });
  reads([&] {
    const auto attachments = docs::attachments_of(body);
    std::size_t shown = 0;
    docs::with_contents(body, [&](std::string& out, const docs::Attachment&) {
      out += "\"data\":\"\"";
      ++shown;
    });
    check(shown == attachments.size());
    if (shown > 0) check(docs::without_attachments(body).starts_with('{'));
  });
}

void read_settings(divan::fuzz::Rows& rows, docs::Catalog& catalog, std::string_view record) {
  std::string key;
  divan::kv::tuple::Packer(key).string("dbs").string("db");
  rows.set(key, record);
  std::optional<docs::Database> database;
  if (!reads([&] { database = catalog.find(rows, "db"); })) return;
  docs::write_config(rows, *database, "revs_limit", record);
  check(docs::revs_limit(rows, *database) > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static Store store;
  if (size == 0) return 0;
  divan::fuzz::Pieces pieces(divan::fuzz::text_of(data + 1, size - 1));
  divan::fuzz::Rows rows;
  if (data[0] % 4 == 3) {
    read_settings(rows, store.catalog, pieces.rest());
    read_attachments(pieces.rest());
    return 0;
  }
  constexpr docs::Section kSections[] = {docs::Section::revs, docs::Section::changes, docs::Section::local};
  const std::string section = store.database.keys().section(kSections[data[0] % 4]);
  while (!pieces.at_end()) {
    const auto key = pieces.take();
    rows.set(section + std::string(key), pieces.take());
  }
  // An existing body, for the rows that refer to it.
  rows.set(store.database.keys().body({}, 0), "{\"a\":1}");
  switch (data[0] % 4) {
    case 0: reads([&] { read_documents(rows, store.database, data[0] >= 128); }); break;
    case 1: reads([&] { read_changes(rows, store.database); }); break;
    default: reads([&] { read_locals(rows, store.database); });
  }
  return 0;
}
