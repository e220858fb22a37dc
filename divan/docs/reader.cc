#include "divan/docs/reader.h"

#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/docs/contents.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/partition.h"
#include "divan/kv/chunks.h"

namespace divan::docs {
namespace {

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

// The versionstamp of the last key that continues `prefix` with one; zero if there is none.
kv::Versionstamp last_stamp(kv::Transaction& tx, const std::string& prefix, kv::Isolation isolation) {
  kv::Versionstamp last;
  tx.scan(below(prefix), {.limit = 1, .reverse = true, .isolation = isolation},
          [&](std::string_view key, std::string_view) {
            last = kv::tuple::Reader(key.substr(prefix.size())).take_versionstamp().value_or(last);
            return true;
          });
  return last;
}

}  // namespace

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
  if (!body) throw damaged_document();
  return *std::move(body);
}

std::string read_body(kv::Transaction& tx, const Database& database, const Leaf& leaf, AttachmentForm form) {
  std::string body = read_body(tx, database, leaf);
  if (form == AttachmentForm::stubs || leaf.attachments == 0) return body;
  return with_attachment_form(tx, database, body, form);
}

StoredRevision find_document(kv::Transaction& tx, const Database& database, std::string_view id,
                             const std::optional<Revision>& revision, bool latest, bool deleted) {
  check_id_in(database, id);
  StoredRevision found;
  found.tree = read_tree(tx, database, id, kv::Isolation::snapshot);
  const RevTree& tree = found.tree;
  if (tree.empty()) throw not_found("missing");
  if (!revision) {
    if (tree.front().deleted && !deleted) throw not_found("deleted");
  } else {
    const Leaf* leaf = find_leaf(tree, *revision, latest);
    if (leaf == nullptr) {
      if (!latest) found.old = find_old_revision(tree, *revision);
      if (!found.old) throw not_found("missing");
    } else {
      found.leaf = static_cast<std::size_t>(leaf - tree.data());
      DIVAN_CHECK(found.leaf < tree.size(), "leaf {} of {} was found", found.leaf, tree.size());
    }
  }
  found.body = read_body(tx, database, found.revision());
  return found;
}

kv::Versionstamp last_sequence(kv::Transaction& tx, const Database& database, kv::Isolation isolation) {
  return std::max(last_stamp(tx, database.keys().section(Section::changes), isolation),
                  last_stamp(tx, database.keys().purges(PurgeRow::document), isolation));
}

void prefetch_last_sequence(kv::Prefetch& reads, const Database& database) {
  reads.range(below(database.keys().section(Section::changes)), 1, true);
  reads.range(below(database.keys().purges(PurgeRow::document)), 1, true);
}

DatabaseInfo read_info(kv::Transaction& tx, const Database& database) {
  const std::vector<std::string> keys = {
      database.keys().stat("docs"),    database.keys().stat("deleted"),
      database.keys().stat("bytes"),   database.keys().stat("attachment_bytes"),
      database.keys().stat(kOldBytes), database.keys().stat(kOldAttachmentBytes)};
  if (tx.is_remote()) {
    kv::Prefetch reads{.keys = keys, .ranges = {}};
    prefetch_last_sequence(reads, database);
    reads.range(below(database.keys().purges(PurgeRow::record)), 1, true);
    tx.prefetch(reads);
  }
  const auto counters = tx.get_many(keys, kv::Isolation::snapshot);
  // Clamped, so that sums of damaged counters do not overflow.
  const auto count = [&](std::size_t i) {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    return std::clamp(kv::decode_counter(counters[i]), -kMost, kMost);
  };
  const auto last_purge = last_stamp(tx, database.keys().purges(PurgeRow::record), kv::Isolation::snapshot);
  return {.doc_count = count(0),
          .doc_del_count = count(1),
          .body_bytes = count(2),
          .attachment_bytes = count(3),
          .old = {count(4), count(5)},
          .update_seq = last_sequence(tx, database),
          .purge_seq = last_purge};
}

void add_old_sizes(kv::Transaction& tx, const Database& database, const OldSizes& added) {
  if (added.bodies != 0) tx.add(database.keys().stat(kOldBytes), added.bodies);
  if (added.attachments != 0) tx.add(database.keys().stat(kOldAttachmentBytes), added.attachments);
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
  bool wants_more = true;
  const auto finish = [&] {
    if (winner && !winner->deleted) wants_more = visit(id, *winner);
    winner.reset();
    return wants_more;
  };
  tx.scan(keys, {.reverse = range.descending, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            kv::tuple::Reader reader(key.substr(prefix));
            auto row_id = reader.take_string();
            if (!row_id) throw damaged_document();
            if (winner && *row_id == id) {
              if (!range.descending) winner = decode_leaf(reader, value);
              return true;
            }
            if (!finish()) return false;
            id = *std::move(row_id);
            winner = decode_leaf(reader, value);
            return true;
          });
  if (wants_more) finish();
}

}  // namespace divan::docs
