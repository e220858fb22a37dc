#include "divan/docs/reader.h"

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/kv/chunks.h"

namespace divan::docs {
namespace {

constexpr std::string_view kRevsLimit = "revs_limit";
constexpr std::size_t kDefaultRevsLimit = 1000;

Error damaged() { return internal_error("A document's row in the store is damaged."); }

std::uint64_t take_number(std::string_view& bytes) {
  const auto number = take_varint(bytes);
  if (!number) throw damaged();
  return *number;
}

// The key of the first row of a document whose id is not less than `id`.
std::string first_leaf_key(const Database& database, std::string_view id) {
  std::string key;
  database.keys().packer(key, Section::revs).string(id);
  return key;
}

kv::KeyRange leaf_range(const Database& database, const DocumentRange& range) {
  const kv::KeyRange all = below(database.keys().section(Section::revs));
  const auto& lower = range.descending ? range.end_id : range.start_id;
  const auto& upper = range.descending ? range.start_id : range.end_id;
  const bool lower_inclusive = !range.descending || range.inclusive_end;
  const bool upper_inclusive = range.descending || range.inclusive_end;
  kv::KeyRange keys = all;
  if (lower)
    keys.begin = lower_inclusive ? first_leaf_key(database, *lower) : database.keys().leaves(*lower).end;
  if (upper)
    keys.end = upper_inclusive ? database.keys().leaves(*upper).end : first_leaf_key(database, *upper);
  return keys;
}

}  // namespace

std::string encode_leaf(const Leaf& leaf) {
  // What decode_leaf() refuses.
  DIVAN_CHECK(!leaf.path.ids.empty() && leaf.path.ids.size() <= leaf.path.generation,
              "{} revisions up to generation {}", leaf.path.ids.size(), leaf.path.generation);
  DIVAN_CHECK(leaf.body_bytes <= kMaxDocumentBytes && leaf.chunks == body_chunks(leaf.body_bytes),
              "a body of {} bytes in {} pieces", leaf.body_bytes, leaf.chunks);
  std::string value(leaf.sequence.bytes());
  append_varint(value, leaf.chunks);
  append_varint(value, leaf.body_bytes);
  append_varint(value, leaf.path.ids.size() - 1);
  for (std::size_t i = 1; i < leaf.path.ids.size(); ++i) {
    append_varint(value, leaf.path.ids[i].size());
    value += leaf.path.ids[i];
  }
  return value;
}

Leaf decode_leaf(kv::tuple::Reader id_after, std::string_view value) {
  Leaf leaf;
  const auto live = id_after.take_int();
  const auto generation = id_after.take_int();
  auto identifier = id_after.take_bytes();
  const auto sequence = kv::Versionstamp::from_bytes(value.substr(0, kv::Versionstamp::kSize));
  if (!live || !generation || !identifier || !sequence || !sequence->is_complete() || !id_after.at_end())
    throw damaged();
  if (*live < 0 || *live > 1 || *generation < 1 || *generation > UINT32_MAX) throw damaged();
  leaf.deleted = *live == 0;
  leaf.sequence = *sequence;
  value.remove_prefix(kv::Versionstamp::kSize);
  const std::uint64_t chunks = take_number(value);
  leaf.body_bytes = take_number(value);
  if (leaf.body_bytes > kMaxDocumentBytes || chunks != body_chunks(leaf.body_bytes)) throw damaged();
  leaf.chunks = static_cast<std::uint32_t>(chunks);
  leaf.path.generation = static_cast<std::uint32_t>(*generation);
  const std::uint64_t ancestors = take_number(value);
  if (ancestors > value.size() || ancestors >= leaf.path.generation) throw damaged();
  leaf.path.ids.reserve(ancestors + 1);
  leaf.path.ids.push_back(*std::move(identifier));
  for (std::uint64_t i = 0; i < ancestors; ++i) {
    const std::uint64_t size = take_number(value);
    if (size > value.size()) throw damaged();
    leaf.path.ids.emplace_back(value.substr(0, size));
    value.remove_prefix(size);
  }
  if (!value.empty()) throw damaged();
  return leaf;
}

void prefetch_documents(kv::Transaction& tx, Catalog& catalog, std::string_view name,
                        std::span<const std::string_view> ids, bool to_write) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  if (const auto database = catalog.prefetch(reads, name)) {
    for (const auto id : ids) reads.range(database->keys().leaves(id));
    if (to_write) reads.key(database->keys().config(kRevsLimit));
  }
  tx.prefetch(reads);
}

void prefetch_trees(kv::Transaction& tx, const Database& database, std::span<const std::string> ids) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  for (const auto& id : ids) reads.range(database.keys().leaves(id));
  tx.prefetch(reads);
}

void prefetch_bodies(kv::Transaction& tx, const Database& database, std::span<const Leaf> leaves) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  for (const auto& leaf : leaves) {
    for (std::uint32_t chunk = 0; chunk < leaf.chunks; ++chunk)
      reads.key(database.keys().body(leaf.sequence, chunk));
  }
  tx.prefetch(reads);
}

void prefetch_winners(kv::Transaction& tx, const Database& database, std::span<const std::string> ids,
                      std::uint64_t max_bytes) {
  if (!tx.is_remote()) return;
  std::vector<Leaf> winners;
  std::uint64_t bytes = 0;
  for (const auto& id : ids) {
    if (bytes >= max_bytes) break;
    auto tree = read_tree(tx, database, id, kv::Isolation::snapshot);
    if (tree.empty() || tree.front().deleted) continue;
    bytes += tree.front().body_bytes;
    winners.push_back(std::move(tree.front()));
  }
  prefetch_bodies(tx, database, winners);
}

RevTree read_tree(kv::Transaction& tx, const Database& database, std::string_view id,
                  kv::Isolation isolation) {
  RevTree tree;
  const kv::KeyRange range = database.keys().leaves(id);
  const std::size_t prefix = range.begin.size();
  tx.scan(range, {.isolation = isolation}, [&](std::string_view key, std::string_view value) {
    tree.push_back(decode_leaf(kv::tuple::Reader(key.substr(prefix)), value));
    return true;
  });
  // Keys sort by precedence, the winner last. Reading backwards, the store would have to seek twice for each
  // document.
  std::reverse(tree.begin(), tree.end());
  return tree;
}

std::string read_body(kv::Transaction& tx, const Database& database, const kv::Versionstamp& sequence,
                      std::uint32_t chunks) {
  if (chunks == 0) return "{}";
  auto body =
      kv::read_chunks(tx, chunks, [&](std::uint32_t chunk) { return database.keys().body(sequence, chunk); });
  if (!body) throw damaged();
  return *std::move(body);
}

StoredRevision find_document(kv::Transaction& tx, const Database& database, std::string_view id,
                             const std::optional<Revision>& revision, bool latest, bool deleted) {
  StoredRevision found;
  found.tree = read_tree(tx, database, id, kv::Isolation::snapshot);
  const RevTree& tree = found.tree;
  if (tree.empty()) throw not_found("missing");
  if (!revision) {
    if (tree.front().deleted && !deleted) throw not_found("deleted");
  } else {
    const Leaf* leaf = find_leaf(tree, *revision, latest);
    if (leaf == nullptr) throw not_found("missing");
    found.leaf = static_cast<std::size_t>(leaf - tree.data());
    DIVAN_CHECK(found.leaf < tree.size(), "leaf {} of {} was found", found.leaf, tree.size());
  }
  found.body = read_body(tx, database, found.revision());
  return found;
}

kv::Versionstamp last_sequence(kv::Transaction& tx, const Database& database, kv::Isolation isolation) {
  const std::string section = database.keys().section(Section::changes);
  kv::Versionstamp last;
  tx.scan(below(section), {.limit = 1, .reverse = true, .isolation = isolation},
          [&](std::string_view key, std::string_view) {
            last = kv::tuple::Reader(key.substr(section.size())).take_versionstamp().value_or(last);
            return true;
          });
  return last;
}

void prefetch_last_sequence(kv::Prefetch& reads, const Database& database) {
  reads.range(below(database.keys().section(Section::changes)), 1, true);
}

DatabaseInfo read_info(kv::Transaction& tx, const Database& database) {
  const std::vector<std::string> keys = {database.keys().stat("docs"), database.keys().stat("deleted"),
                                         database.keys().stat("bytes")};
  if (tx.is_remote()) {
    kv::Prefetch reads{.keys = keys, .ranges = {}};
    prefetch_last_sequence(reads, database);
    tx.prefetch(reads);
  }
  const auto counters = tx.get_many(keys, kv::Isolation::snapshot);
  // Damaged counters are added all the same.
  const auto count = [&](std::size_t i) {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    return std::clamp(kv::decode_counter(counters[i]), -kMost, kMost);
  };
  return {count(0), count(1), count(2), last_sequence(tx, database)};
}

void visit_documents(kv::Transaction& tx, const Database& database, const DocumentRange& range,
                     const DocumentVisitor& visit) {
  const kv::KeyRange keys = leaf_range(database, range);
  if (keys.begin >= keys.end) return;
  const std::size_t prefix = database.keys().section(Section::revs).size();
  // A document's rows are adjacent, and its winner is the last of them: in ascending order, a document is
  // complete when the next one begins.
  std::string id;
  std::optional<Leaf> winner;
  bool going_on = true;
  const auto finish = [&] {
    if (winner && !winner->deleted) going_on = visit(id, *winner);
    winner.reset();
    return going_on;
  };
  tx.scan(keys, {.reverse = range.descending, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            kv::tuple::Reader reader(key.substr(prefix));
            auto row_id = reader.take_string();
            if (!row_id) throw damaged();
            if (winner && *row_id == id) {
              if (!range.descending) winner = decode_leaf(reader, value);
              return true;
            }
            if (!finish()) return false;
            id = *std::move(row_id);
            winner = decode_leaf(reader, value);
            return true;
          });
  if (going_on) finish();
}

std::optional<std::string> read_config(kv::Transaction& tx, const Database& database, std::string_view name) {
  return tx.get(database.keys().config(name));
}

void write_config(kv::Transaction& tx, const Database& database, std::string_view name,
                  std::string_view json) {
  tx.set(database.keys().config(name), json);
}

std::size_t revs_limit(kv::Transaction& tx, const Database& database) {
  const auto stored = read_config(tx, database, kRevsLimit);
  const auto limit = stored ? json::int_value(*stored) : std::nullopt;
  return limit && *limit > 0 ? static_cast<std::size_t>(*limit) : kDefaultRevsLimit;
}

}  // namespace divan::docs
