#include "divan/docs/writer.h"

#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/docs/bodies.h"
#include "divan/docs/changes.h"
#include "divan/docs/contents.h"
#include "divan/docs/database_settings.h"
#include "divan/docs/design_document.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/partition.h"
#include "divan/docs/reader.h"
#include "divan/kv/chunks.h"

namespace divan::docs {
namespace {

constexpr std::uint16_t kMaxWrites = 60'000;
static_assert(kMaxWrites + kMaxRevisionsAtOnce < UINT16_MAX);
const WriteRules kNoRules;

kv::Versionstamp latest_sequence(const RevTree& tree) {
  kv::Versionstamp latest;
  for (const Leaf& leaf : tree) latest = std::max(latest, leaf.sequence);
  return latest;
}

// Truncates the ancestors to what fits in the leaf's row, as if the revision limit were lower.
void cut_to_row(RevisionPath& path) {
  constexpr std::size_t kOtherFields = 64;
  std::size_t bytes = kOtherFields + kMaxOldRevisions * kMaxOldRevisionBytes;
  for (std::size_t i = 0; i < path.ids.size(); ++i) {
    bytes += path.ids[i].size() + 2;
    if (bytes <= kv::kMaxValueBytes) continue;
    path.ids.resize(i);
    return;
  }
}

struct ReplacedLeaf {
  Leaf leaf;
  std::optional<std::string> body;  // of one with attachments
};

// What takes the place of an index that is not on the path of the successor: a replicated path may be shorter
// than the known one, or contradict it.
constexpr std::uint32_t kNotOnPath = UINT32_MAX;

// Adds the leaf and its old revisions to those of its successor, whose path has been cut.
void inherit_old(const ReplacedLeaf& given, const std::vector<Attachment>& attachments, Leaf& successor) {
  const Leaf& replaced = given.leaf;
  const std::uint32_t distance = successor.path.generation - replaced.path.generation;
  OldRevision& latest = successor.old.emplace_back(OldRevision{.index = distance,
                                                               .deleted = replaced.deleted,
                                                               .sequence = replaced.sequence,
                                                               .chunks = replaced.chunks,
                                                               .body_bytes = replaced.body_bytes,
                                                               .attachments = replaced.attachments});
  if (given.body) {
    for (const Attachment& attachment : attachments_of(*given.body)) {
      if (std::ranges::find(attachments, attachment.md5, &Attachment::md5) == attachments.end())
        latest.own_attachment_bytes += attachment.length;
    }
  }
  for (OldRevision old : replaced.old) {
    const auto& known = replaced.path.ids;
    const auto& ids = successor.path.ids;
    const std::size_t index = std::size_t{old.index} + distance;
    const bool is_on_path = old.index < known.size() && index < ids.size() && ids[index] == known[old.index];
    old.index = is_on_path ? static_cast<std::uint32_t>(index) : kNotOnPath;
    successor.old.push_back(old);
  }
}

}  // namespace

void replace_winner(kv::Transaction& tx, const Database& database, const std::string& id, const Leaf& winner,
                    std::string_view body) {
  auto document = parse_document(body);
  document.id = id;
  document.revision = winner.revision();
  database.catalog().check_document(document, true);
  Writer writer(tx, database, Validators{read_validators(tx, database), database.number()});
  const auto result = writer.edit(document, Acceptance{document.revision});
  if (result.error) throw Error(*result.error);
  writer.finish();
}

RevisionPath given_path(const IncomingDocument& document) {
  if (!document.revision || document.revision->generation == 0)
    throw bad_request("Document rev must be given");
  if (document.revisions) return *document.revisions;
  if (document.revision->generation > kMaxGeneration) throw bad_request("Invalid rev format");
  return {document.revision->generation, {document.revision->id}};
}

Writer::Writer(kv::Transaction& tx, Database database, const WriteRules& rules, const Validators& validators)
    : tx_(tx), database_(std::move(database)), rules_(rules), contents_(tx, database_) {
  const std::string present = read_validators(tx, database_);
  is_validated_ = !present.empty();
  if (present != validators.list || (is_validated_ && database_.number() != validators.database))
    throw NotValidated{.list_changed = true};
}

Writer::Writer(kv::Transaction& tx, Database database, const Validators& validators)
    : Writer(tx, std::move(database), kNoRules, validators) {}

void Writer::check_acceptance(std::string_view id, const std::optional<Acceptance>& acceptance,
                              const Leaf* replaced) const {
  if (!is_validated_ || is_design(id)) return;
  const auto revision = replaced == nullptr ? std::nullopt : std::optional(replaced->revision());
  if (!acceptance || acceptance->replaced != revision) throw NotValidated();
}

bool Writer::is_full() const {
  return tx_.approximate_size() >= kFullTransactionBytes || next_user_version_ >= kMaxWrites;
}

std::size_t Writer::revs_limit() {
  if (!revs_limit_) revs_limit_ = docs::revs_limit(tx_, database_);
  DIVAN_CHECK(*revs_limit_ > 0, "a document would lose its revision");
  return *revs_limit_;
}

Writer::NewBody Writer::new_body(const IncomingDocument& document, const std::string* replaced,
                                 std::uint32_t generation, bool keep_revpos) {
  NewBody body{.document = &document};
  if (document.attachments.empty()) return body;
  body.attachments = contents_.resolve(document.attachments, replaced, document.id, generation, keep_revpos);
  body.with_attachments = with_attachments(document.body, body.attachments);
  std::uint64_t bytes = body.with_attachments.size();
  bytes += body.attachments.size() * kAttachmentRowsBytes;
  if (bytes > kMaxDocumentBytes) throw Error(413, "attachment_too_large", too_large_reason(document.id));
  return body;
}

Leaf Writer::new_leaf(RevisionPath path, bool deleted, const NewBody& body, const RevTree& before) {
  DIVAN_CHECK(next_user_version_ < UINT16_MAX, "two writes of a transaction would have one sequence");
  Leaf leaf;
  leaf.path = std::move(path);
  cut_to_row(leaf.path);
  DIVAN_CHECK(!leaf.path.ids.empty() && leaf.path.ids.size() <= leaf.path.generation,
              "{} revisions up to generation {}", leaf.path.ids.size(), leaf.path.generation);
  leaf.deleted = deleted;
  leaf.sequence = kv::Versionstamp::incomplete(next_user_version_++);
  const bool exists = !before.empty() && !before.front().deleted;
  leaf.exists_since = exists ? before.front().exists_since : leaf.sequence;
  leaf.body_bytes = body.text().size();
  leaf.chunks = body_chunks(body.text().size());
  leaf.attachments = static_cast<std::uint32_t>(body.attachments.size());
  return leaf;
}

void Writer::remove_leaf(std::string_view id, const Leaf& leaf) {
  remove_leaf_row(id, leaf);
  remove_body(tx_, database_, leaf, contents_);
}

void Writer::remove_leaf_row(std::string_view id, const Leaf& leaf) {
  tx_.clear(database_.keys().leaf(id, leaf.deleted, leaf.revision()));
  bytes_ -= static_cast<std::int64_t>(leaf.body_bytes);
}

void Writer::limit_old(Leaf& leaf) {
  std::ranges::stable_sort(leaf.old, {}, &OldRevision::index);
  // Replaced passwords are not kept.
  const std::size_t limit = database_.name() == kUsersDatabase ? 0 : database_.catalog().max_old_revisions();
  std::vector<OldRevision> kept;
  for (const OldRevision& old : leaf.old) {
    const bool is_repeated = !kept.empty() && kept.back().index == old.index;
    if (kept.size() < limit && old.index < leaf.path.ids.size() && !is_repeated) {
      kept.push_back(old);
    } else if (old.sequence.is_complete()) {  // others are of this transaction, and not written
      remove_body(tx_, database_, old, contents_);
    }
  }
  leaf.old = std::move(kept);
}

void Writer::put_leaf(std::string_view id, const Leaf& leaf, const NewBody& body) {
  constexpr std::string_view kStampAtStart("\0\0\0\0", 4);
  DIVAN_CHECK(!leaf.sequence.is_complete(), "a leaf is written with the sequence of another commit");
  DIVAN_CHECK(leaf.body_bytes == body.text().size(), "{} bytes of a body of {}", leaf.body_bytes,
              body.text().size());
  tx_.set_versionstamped_value(database_.keys().leaf(id, leaf.deleted, leaf.revision()),
                               encode_leaf(leaf) + std::string(kStampAtStart));
  put_body(leaf.sequence, body);
  bytes_ += static_cast<std::int64_t>(leaf.body_bytes);
}

void Writer::put_body(const kv::Versionstamp& sequence, const NewBody& body) {
  contents_.add_references(body.attachments);
  if (body_chunks(body.text().size()) == 0) return;
  kv::for_each_chunk(body.text(), [&](std::uint32_t chunk, std::string_view piece) {
    std::string key;
    auto packer = database_.keys().packer(key, Section::body);
    packer.versionstamp(sequence).integer(chunk).finish_versionstamped();
    tx_.set_versionstamped_key(key, piece);
  });
}

void Writer::forget_change(std::string_view id, const RevTree& before) {
  const bool is_first = written_.emplace(id).second;
  DIVAN_CHECK(is_first, "a document is written twice in a transaction");
  if (is_design(id)) design_documents_.emplace_back(id);
  if (before.empty()) return;
  tx_.clear(database_.keys().change(latest_sequence(before)));
  (before.front().deleted ? deleted_ : docs_) -= 1;
  const OldSizes old = old_sizes(before);
  old_.bodies -= old.bodies;
  old_.attachments -= old.attachments;
}

void Writer::record(std::string_view id, const RevTree& before, const RevTree& after) {
  DIVAN_CHECK(!after.empty(), "a document that was written has no leaves");
  DIVAN_CHECK(after.size() == 1 || !after[1].wins_over(after[0]), "the first leaf is not the winner");
  forget_change(id, before);
  const Leaf& winner = after.front();
  (winner.deleted ? deleted_ : docs_) += 1;
  const OldSizes old = old_sizes(after);
  old_.bodies += old.bodies;
  old_.attachments += old.attachments;
  Change change;
  change.sequence = latest_sequence(after);
  change.id = id;
  change.winner = winner.revision();
  change.deleted = winner.deleted;
  change.body_sequence = winner.sequence;
  change.chunks = winner.chunks;
  change.other_leaves = static_cast<std::uint32_t>(after.size() - 1);
  DIVAN_CHECK(!change.sequence.is_complete(), "a change keeps the sequence of an earlier one");
  const bool here = !winner.sequence.is_complete();
  write_change(tx_, database_, change, here ? std::optional(winner.sequence.user_version()) : std::nullopt);
}

WriteResult Writer::edit(const IncomingDocument& document, const std::optional<Acceptance>& acceptance) {
  WriteResult result;
  result.id = document.id;
  const auto refuse = [&](Error error) {
    result.error = std::move(error);
    return result;
  };
  check_id_in(database_, document.id);
  const RevTree before = read_tree(tx_, database_, document.id);
  const auto replaced_leaf = edited_leaf(before, document);
  if (!replaced_leaf) return refuse(conflict());
  const Leaf* const parent = *replaced_leaf;
  check_acceptance(document.id, acceptance, replaced_by_edit(parent));
  if (rules_.check_edit) {
    try {
      const Leaf* current = parent && !parent->deleted ? parent : nullptr;
      if (current == nullptr && !before.empty() && !before.front().deleted) current = &before.front();
      rules_.check_edit(tx_, database_, document, current);
    } catch (const Error& error) { return refuse(error); }
  }
  if (parent && parent->path.generation == UINT32_MAX)
    return refuse(bad_request("The document's revision has the highest possible generation."));

  NewBody body;
  std::optional<std::string> replaced_body;  // of one with attachments
  try {
    if (is_design(document.id) && !document.deleted && !database_.is_partitioned())
      check_is_not_partitioned(document.body);
    if (parent && parent->attachments > 0) replaced_body = read_body(tx_, database_, *parent);
    const std::uint32_t generation = parent ? parent->path.generation + 1 : 1;
    body = new_body(document, replaced_body ? &*replaced_body : nullptr, generation, false);
  } catch (const Error& error) {
    if (error.status() == 500) throw;
    return refuse(error);
  }

  if (is_design(document.id) && !document.deleted)
    database_.catalog().run_design_hooks(tx_, database_, document.id, document.body);

  const auto parent_revision = parent ? std::optional(parent->revision()) : std::nullopt;
  RevisionPath path;
  path.generation = parent ? parent->path.generation + 1 : 1;
  path.ids.push_back(revision_id(document.deleted, parent_revision, body.text()));
  if (parent) path.ids.insert(path.ids.end(), parent->path.ids.begin(), parent->path.ids.end());
  if (path.ids.size() > revs_limit()) path.ids.resize(revs_limit());
  result.revision = path.revision();

  Leaf leaf = new_leaf(std::move(path), document.deleted, body, before);
  RevTree after = before;
  if (parent) {
    const std::ptrdiff_t replaced = parent - before.data();
    DIVAN_CHECK(replaced >= 0 && replaced < std::ssize(after), "leaf {} of {} is replaced", replaced,
                after.size());
    remove_leaf_row(document.id, *parent);
    inherit_old({*parent, std::move(replaced_body)}, body.attachments, leaf);
    limit_old(leaf);
    after.erase(after.begin() + replaced);
  }
  after.push_back(std::move(leaf));
  put_leaf(document.id, after.back(), body);
  contents_.store(document.attachments);
  sort_leaves(after);
  record(document.id, before, after);
  if (is_design(document.id)) {
    const Leaf& winner = after.front();
    const bool is_stored = winner.sequence.is_complete();
    design_document_written(document.id, winner,
                            is_stored ? read_body(tx_, database_, winner) : std::string(body.text()));
  }
  return result;
}

std::optional<Error> Writer::replicate(std::string_view id, std::span<const IncomingDocument> revisions,
                                       std::span<const std::optional<Acceptance>> acceptances) {
  check_id_in(database_, id);
  const RevTree before = read_tree(tx_, database_, id);
  RevTree after = before;
  std::vector<Leaf> removed;
  std::vector<std::pair<Revision, NewBody>> bodies;  // of the new leaves
  // The last one: with a low revs_limit, a replaced revision is forgotten, and may be repeated.
  const auto body_of = [&](const Revision& revision) -> const NewBody& {
    const auto body = std::find_if(bodies.rbegin(), bodies.rend(),
                                   [&](const auto& entry) { return entry.first == revision; });
    DIVAN_CHECK(body != bodies.rend(), "a new leaf has no body");
    return body->second;
  };
  for (std::size_t i = 0; i < revisions.size(); ++i) {
    const RevisionPath path = given_path(revisions[i]);
    if (knows(before, path.revision())) continue;
    check_acceptance(id, i < acceptances.size() ? acceptances[i] : std::nullopt,
                     replaced_by_replication(before, path));
  }
  for (const IncomingDocument& document : revisions) {
    const RevisionPath path = given_path(document);
    Merge merged = merge(after, path, revs_limit());
    // With a low revs_limit, a revision before it may have replaced this one and forgotten it.
    if (merged.known || knows(before, path.revision())) continue;
    std::vector<ReplacedLeaf> all_replaced;
    for (auto it = merged.replaces.rbegin(); it != merged.replaces.rend(); ++it) {
      const auto leaf = after.begin() + static_cast<std::ptrdiff_t>(*it);
      // A leaf of this same call is not written yet.
      const bool is_stored = leaf->sequence.is_complete();
      if (is_stored) removed.push_back(*leaf);
      all_replaced.push_back({std::move(*leaf), {}});
      after.erase(leaf);
      auto& [replaced, body] = all_replaced.back();
      if (replaced.attachments == 0) continue;
      body = is_stored ? read_body(tx_, database_, replaced) : body_of(replaced.revision()).with_attachments;
    }
    const std::string* stubs = nullptr;  // the body with the attachments of stubs
    for (const ReplacedLeaf& replaced : all_replaced) {
      if (replaced.body) stubs = &*replaced.body;
    }
    try {
      auto body = new_body(document, stubs, merged.path.generation, true);
      bodies.emplace_back(merged.path.revision(), std::move(body));
    } catch (const Error& error) {
      if (error.status() == 500) throw;
      return error;
    }
    const NewBody& body = bodies.back().second;
    Leaf leaf = new_leaf(std::move(merged.path), document.deleted, body, before);
    for (const ReplacedLeaf& replaced : all_replaced) inherit_old(replaced, body.attachments, leaf);
    after.push_back(std::move(leaf));
  }
  for (const Leaf& leaf : removed) remove_leaf_row(id, leaf);
  bool changed = false;
  for (Leaf& leaf : after) {
    if (leaf.sequence.is_complete()) continue;
    limit_old(leaf);
    put_leaf(id, leaf, body_of(leaf.revision()));
    for (const OldRevision& old : leaf.old) {
      if (!old.sequence.is_complete()) put_body(old.sequence, body_of(leaf.ancestor(old).revision()));
    }
    changed = true;
  }
  if (!changed) return std::nullopt;
  // Also those of revisions that others of these replace.
  for (const auto& entry : bodies) contents_.store(entry.second.document->attachments);
  sort_leaves(after);
  record(id, before, after);
  if (is_design(id)) {
    const Leaf& winner = after.front();
    const bool is_stored = winner.sequence.is_complete();
    design_document_written(
        id, winner,
        is_stored ? read_body(tx_, database_, winner) : std::string(body_of(winner.revision()).text()));
  }
  return std::nullopt;
}

void Writer::design_document_written(std::string_view id, const Leaf& winner, std::string_view body) {
  update_validators(tx_, database_, id, winner, body);
  DIVAN_CHECK(next_user_version_ > 0, "a document was written without a sequence");
  database_.catalog().run_design_winner_hooks(
      tx_, database_, std::string(id), winner.deleted ? "" : body,
      kv::Versionstamp::incomplete(static_cast<std::uint16_t>(next_user_version_ - 1)));
}

void Writer::finish() {
  if (purge_records_ != 0) tx_.add(database_.keys().stat(kPurgeRecords), purge_records_);
  if (written_.empty()) return;
  // Each written document is either new or was counted before, or was purged.
  DIVAN_CHECK(std::abs(docs_ + deleted_) <= std::ssize(written_),
              "{} more documents and {} more deleted ones after {} writes", docs_, deleted_, written_.size());
  contents_.finish();
  if (docs_ != 0) tx_.add(database_.keys().stat("docs"), docs_);
  if (deleted_ != 0) tx_.add(database_.keys().stat("deleted"), deleted_);
  if (bytes_ != 0) tx_.add(database_.keys().stat("bytes"), bytes_);
  add_old_sizes(tx_, database_, old_);
  database_.catalog().changed(tx_, database_, events::DatabaseEvent::updated, {}, written_.size());
  for (auto& id : design_documents_) {
    database_.catalog().changed(tx_, database_, events::DatabaseEvent::ddoc_updated, std::move(id));
  }
}

}  // namespace divan::docs
