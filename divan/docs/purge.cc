#include "divan/docs/purge.h"

#include <algorithm>
#include <set>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/bodies.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/partition.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"

namespace divan::docs {
namespace {

// A record of a purge is continued in another one beyond this.
constexpr std::size_t kMaxRecordBytes = kv::kMaxValueBytes / 2;
// Maximum number of revisions of a document that one transaction purges, whose leaves' keys are long.
constexpr std::size_t kMaxRevisions = 250;
constexpr std::int64_t kRecordsPerTransaction = 1'000;

Error damaged() { return internal_error("A row of a purge in the store is damaged."); }

kv::KeyRange rows_after(const Database& database, PurgeRow row, const kv::Versionstamp& since) {
  return {database.keys().purge(row, since) + '\0', below(database.keys().purges(row)).end};
}

std::int64_t count_records(kv::Transaction& tx, const Database& database) {
  return kv::decode_counter(tx.get(database.keys().stat(kPurgeRecords), kv::Isolation::snapshot));
}

// Parts of a request that fit in a transaction.
std::vector<PurgeRequest> parts_of(const PurgeRequest& request) {
  std::vector<Revision> all = request.revisions;
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<PurgeRequest> parts;
  for (std::size_t first = 0; first == 0 || first < all.size(); first += kMaxRevisions) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), first + kMaxRevisions));
    parts.push_back({request.id, {begin, end}});
  }
  return parts;
}

// The database in another transaction. Another one of the same name is not it.
Database reopen(kv::Transaction& tx, const Database& database) {
  auto present = database.catalog().open(tx, database.name());
  if (present.number() != database.number()) throw not_found("Database does not exist.");
  return present;
}

// Purges the first of `left`, as many as fit in the transaction.
std::vector<std::vector<Revision>> purge_some(kv::Transaction& tx, const Database& database,
                                              std::span<const PurgeRequest> left) {
  if (tx.is_remote()) {
    constexpr std::size_t kAhead = 500;
    std::vector<std::string_view> ids;
    for (const auto& request : left.first(std::min(left.size(), kAhead))) ids.push_back(request.id);
    prefetch_documents(tx, database.catalog(), database.name(), ids, true);
  }
  const Database present = reopen(tx, database);
  // Nothing is validated: the present functions are given as those that have accepted it.
  Writer writer(tx, present, Validators{read_validators(tx, present), present.number()});
  std::vector<std::vector<Revision>> purged;
  for (const auto& request : left) {
    if (writer.is_full() || writer.was_written(request.id)) break;
    purged.push_back(writer.purge(request.id, request.revisions));
  }
  writer.finish();
  return purged;
}

// Removes the oldest records beyond the limit.
void remove_old_records(kv::Database& store, const Database& database) {
  bool is_done = false;
  while (!is_done) {
    store.run([&](kv::Transaction& tx) {
      const Database present = reopen(tx, database);
      const std::int64_t excess = count_records(tx, present) - purge_records_limit(tx, present);
      is_done = excess <= kRecordsPerTransaction;
      if (excess <= 0) return;
      const auto limit = static_cast<std::size_t>(std::min(excess, kRecordsPerTransaction));
      // Conflicts with another removal of the same rows, which would be counted twice.
      const auto page = tx.get_range(below(present.keys().purges(PurgeRow::record)), {.limit = limit});
      for (const auto& row : page.rows) tx.clear(row.key);
      is_done = is_done || page.rows.empty();
      if (!page.rows.empty())
        tx.add(present.keys().stat(kPurgeRecords), -static_cast<std::int64_t>(page.rows.size()));
    });
  }
}

}  // namespace

std::vector<std::vector<Revision>> purge(kv::Database& store, const Database& database,
                                         std::span<const PurgeRequest> requests,
                                         const Checkpoint& checkpoint) {
  std::vector<std::vector<Revision>> results(requests.size());
  std::vector<PurgeRequest> parts;
  std::vector<std::size_t> request_of;  // by part
  for (std::size_t i = 0; i < requests.size(); ++i) {
    check_document_id(requests[i].id);
    check_id_in(database, requests[i].id);
    if (requests[i].id.starts_with(kLocalPrefix)) throw bad_request("Local documents cannot be purged.");
    for (auto& part : parts_of(requests[i])) {
      parts.push_back(std::move(part));
      request_of.push_back(i);
    }
  }
  for (std::size_t next = 0; next < parts.size();) {
    if (checkpoint) checkpoint();
    std::vector<std::vector<Revision>> purged;
    store.run(
        [&](kv::Transaction& tx) { purged = purge_some(tx, database, std::span(parts).subspan(next)); });
    DIVAN_CHECK(!purged.empty(), "a transaction purges nothing");
    for (auto& revisions : purged) {
      auto& result = results[request_of[next++]];
      std::ranges::move(revisions, std::back_inserter(result));
    }
    remove_old_records(store, database);
  }
  return results;
}

std::vector<Revision> Writer::purge(const std::string& id, const std::vector<Revision>& revisions) {
  DIVAN_CHECK(std::ranges::is_sorted(revisions), "revisions to purge must be sorted");
  record_purge(id, revisions);
  const RevTree before = read_tree(tx_, database_, id);
  RevTree after;
  std::vector<Revision> purged;
  for (const Leaf& leaf : before) {
    if (std::ranges::binary_search(revisions, leaf.revision())) {
      purged.push_back(leaf.revision());
      remove_leaf(id, leaf);
      for (const OldRevision& old : leaf.old) remove_body(tx_, database_, old, contents_);
    } else {
      after.push_back(leaf);
    }
  }
  if (purged.empty()) return purged;
  std::ranges::sort(purged);
  if (after.empty()) {
    record_purged_document(id, before);
  } else {
    renew_winner(id, before, std::move(after));
  }
  return purged;
}

void Writer::record_purge(const std::string& id, std::span<const Revision> revisions) {
  std::string value;
  const auto write = [&] {
    std::string key;
    auto packer = database_.keys().packer(key, Section::purges);
    packer.integer(static_cast<int>(PurgeRow::record))
        .versionstamp(kv::Versionstamp::incomplete(next_user_version_++))
        .finish_versionstamped();
    tx_.set_versionstamped_key(key, value);
    ++purge_records_;
    value.clear();
  };
  const auto begin = [&] { kv::tuple::Packer(value).string(id); };
  begin();
  for (const Revision& revision : revisions) {
    if (value.size() >= kMaxRecordBytes) {
      write();
      begin();
    }
    kv::tuple::Packer(value).integer(revision.generation).bytes(revision.id);
  }
  write();
}

// The document has no leaves any more.
void Writer::record_purged_document(const std::string& id, const RevTree& before) {
  forget_change(id, before);
  std::string key, value;
  auto packer = database_.keys().packer(key, Section::purges);
  packer.integer(static_cast<int>(PurgeRow::document))
      .versionstamp(kv::Versionstamp::incomplete(next_user_version_++))
      .finish_versionstamped();
  kv::tuple::Packer(value).string(id);
  tx_.set_versionstamped_key(key, value);
  if (!is_design(id)) return;
  Leaf none;
  none.deleted = true;
  design_document_written(id, none, "");
  // What is kept of earlier definitions goes, too.
  database_.catalog().run_design_hooks(tx_, database_, id, "{}");
}

// A document's change has the sequence of one of its leaves: the winner gets a new one, to which its body
// moves.
void Writer::renew_winner(const std::string& id, const RevTree& before, RevTree after) {
  Leaf& winner = after.front();
  IncomingDocument document;
  document.body = read_body(tx_, database_, winner);
  NewBody body{.document = &document};
  if (winner.attachments > 0) {
    body.attachments = attachments_of(document.body);
    body.with_attachments = document.body;
  }
  if (is_design(id) && !winner.deleted && winner.revision() != before.front().revision())
    database_.catalog().run_design_hooks(tx_, database_, id, document.body);
  remove_leaf(id, winner);
  winner.sequence = kv::Versionstamp::incomplete(next_user_version_++);
  // A purge is no deletion: otherwise the time of this one would be unknown.
  if (winner.deleted) winner.exists_since = winner.sequence;
  put_leaf(id, winner, body);
  record(id, before, after);
  if (is_design(id)) design_document_written(id, winner, document.body);
}

void visit_purge_records(kv::Transaction& tx, const Database& database, const PurgeRecordVisitor& visit) {
  const std::string prefix = database.keys().purges(PurgeRow::record);
  tx.scan(below(prefix), {.isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            return visit(decode_purge_record(key.substr(prefix.size()), value));
          });
}

void set_purge_records_limit(kv::Database& store, Catalog& catalog, std::string_view name,
                             std::int64_t limit) {
  DIVAN_CHECK(limit > 0, "the last purge would be forgotten");
  const auto database = store.run([&](kv::Transaction& tx) {
    const auto opened = catalog.open(tx, name);
    write_config(tx, opened, kPurgeRecordsLimit, std::to_string(limit));
    return opened;
  });
  remove_old_records(store, database);
}

PurgeRecord decode_purge_record(std::string_view key_after_kind, std::string_view value) {
  kv::tuple::Reader key(key_after_kind), reader(value);
  const auto sequence = key.take_versionstamp();
  auto id = reader.take_string();
  if (!sequence || !key.at_end() || !id) throw damaged();
  PurgeRecord record{*sequence, {*std::move(id), {}}};
  while (!reader.at_end()) {
    const auto generation = reader.take_int();
    auto identifier = reader.take_bytes();
    if (!generation || *generation < 0 || *generation > UINT32_MAX || !identifier) throw damaged();
    record.request.revisions.push_back({static_cast<std::uint32_t>(*generation), *std::move(identifier)});
  }
  return record;
}

PurgedDocument decode_purged_document(std::string_view key_after_kind, std::string_view value) {
  kv::tuple::Reader key(key_after_kind), reader(value);
  const auto sequence = key.take_versionstamp();
  auto id = reader.take_string();
  if (!sequence || !key.at_end() || !id || !reader.at_end()) throw damaged();
  return {*sequence, *std::move(id)};
}

IndexChanges changes_for_indexes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                                 std::size_t limit) {
  IndexChanges found;
  auto& changes = found.changes;
  visit_changes(tx, database, since, [&](const Change& change) {
    changes.push_back(change);
    return changes.size() < limit;
  });
  const std::size_t prefix = database.keys().purges(PurgeRow::document).size();
  const auto of_documents = changes.size();
  tx.scan(rows_after(database, PurgeRow::document, since),
          {.limit = limit, .isolation = kv::Isolation::snapshot},
          [&](std::string_view key, std::string_view value) {
            const auto purged = decode_purged_document(key.substr(prefix), value);
            changes.push_back({.sequence = purged.sequence, .id = purged.id, .deleted = true});
            return true;
          });
  const auto purged = changes.size() - of_documents;
  found.is_all = changes.size() < limit;
  if (purged == 0) return found;
  std::ranges::sort(changes, {}, &Change::sequence);
  // Each list is complete up to its end only if it is shorter than the limit; what is beyond the limit of
  // both together is read again.
  if (changes.size() > limit) changes.resize(limit);
  // Only a document's last change matters.
  std::set<std::string_view> seen;
  std::vector<Change> last;
  for (auto change = changes.rbegin(); change != changes.rend(); ++change) {
    if (seen.insert(change->id).second) last.push_back(*change);
  }
  std::ranges::reverse(last);
  changes = std::move(last);
  return found;
}

std::int64_t count_index_changes(kv::Transaction& tx, const Database& database, const kv::Versionstamp& since,
                                 std::int64_t limit) {
  std::int64_t count = count_changes(tx, database, since, limit);
  if (count >= limit) return count;
  tx.scan(rows_after(database, PurgeRow::document, since), {.isolation = kv::Isolation::snapshot},
          [&](std::string_view, std::string_view) { return ++count < limit; });
  return count;
}

}  // namespace divan::docs
