// Writing documents.
//
// An edit of a document reads the rows of its leaves, and so conflicts with every other edit of the document
// and nothing else. It removes the leaf that it replaces; writes the new leaf and its body; and moves the
// document's row in the changes from its old sequence to the new one. The new sequence is the transaction's
// versionstamp, which the store fills in, with a number for each write of the transaction. The new leaf's row
// says where the bodies of the last replaced revisions are. Those that exceed the limit are removed, and all
// of them by a compaction (compaction.h).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "divan/docs/catalog.h"
#include "divan/docs/contents.h"
#include "divan/docs/document.h"
#include "divan/docs/validation.h"

namespace divan::docs {

/// Transactions end at this size in bytes, which leaves enough space below the store's limit for the largest
/// document.
inline constexpr std::size_t kFullTransactionBytes = 1'500'000;
/// The most revisions of one document in a call of Writer::replicate().
inline constexpr std::size_t kMaxRevisionsAtOnce = 1'000;

/// The result of writing one document.
struct WriteResult {
  std::string id;
  Revision revision;
  std::optional<Error> error;  // if set, nothing was written
};

/// Which documents a user may write. The functions throw the error of a document that is refused; an empty
/// one allows all. They are called on any thread.
struct WriteRules {
  /// Called before the transaction, and before other checks of the document, which may take long.
  std::function<void(const IncomingDocument& document)> check{};
  /// Called in the transaction of an edit, with the leaf that it replaces, or the winner if that leaf is
  /// deleted; null if the document does not exist.
  std::function<void(kv::Transaction& tx, const Database& database, const IncomingDocument& document,
                     const Leaf* current)>
      check_edit{};
};

/// One transaction's writes to one database. Not thread-safe. A document can be written only once in a
/// transaction, since its leaves have no sequence before the commit. Documents must have passed
/// Catalog::check_document() before the transaction.
class Writer {
 public:
  /// `validators` have validated the documents that are to be written. Throws NotValidated unless they are
  /// the database's. `rules` must outlive the writer.
  Writer(kv::Transaction& tx, Database database, const WriteRules& rules, const Validators& validators = {});
  Writer(kv::Transaction& tx, Database database, const Validators& validators = {});

  /// Writes an edit by a client, which names the revision that it replaces in `document.revision` (nullopt
  /// for a new document). The result has the error `conflict` unless that revision is a leaf.
  /// Throws check_id_in()'s errors, and NotValidated, before it has written anything, if the database has
  /// validators, and `acceptance` is not that of this edit.
  WriteResult edit(const IncomingDocument& document, const std::optional<Acceptance>& acceptance = {});

  /// Writes replicated revisions of one document unchanged ("new_edits": false). Known revisions have no
  /// effect. Returns the error, and writes none of them, if an attachment of one cannot be written. Throws
  /// bad_request for one without a revision, and NotValidated as edit(); `acceptances` has one for each.
  std::optional<Error> replicate(std::string_view id, std::span<const IncomingDocument> revisions,
                                 std::span<const std::optional<Acceptance>> acceptances = {});

  /// Purges those of `revisions`, which are sorted, that are leaves (purge.h), and records that in any case.
  /// Returns the purged ones, sorted. Neither WriteRules nor validators apply.
  std::vector<Revision> purge(const std::string& id, const std::vector<Revision>& revisions);

  /// Writes counters and runs the catalog's hooks; events are published after the commit. Must be called
  /// once, before the commit.
  void finish();

  /// Returns true if another document should be written in another transaction.
  bool is_full() const;

  bool was_written(std::string_view id) const { return written_.contains(id); }

 private:
  // The body of a revision that is to be written.
  struct NewBody {
    const IncomingDocument* document = nullptr;
    std::vector<Attachment> attachments{};
    std::string with_attachments{};  // if there are any

    std::string_view text() const { return attachments.empty() ? document->body : with_attachments; }
  };

  NewBody new_body(const IncomingDocument& document, const std::string* replaced, std::uint32_t generation,
                   bool keep_revpos);
  Leaf new_leaf(RevisionPath path, bool deleted, const NewBody& body, const RevTree& before);
  void remove_leaf(std::string_view id, const Leaf& leaf);
  // Removes the row of a leaf whose body remains, as that of an old revision.
  void remove_leaf_row(std::string_view id, const Leaf& leaf);
  // Removes the old revisions of a new leaf that exceed the limit, or are not on its path.
  void limit_old(Leaf& leaf);
  void put_leaf(std::string_view id, const Leaf& leaf, const NewBody& body);
  void put_body(const kv::Versionstamp& sequence, const NewBody& body);
  // Removes the document's row from the changes and from the counters, since it is written or purged.
  void forget_change(std::string_view id, const RevTree& before);
  // Moves the document's row in the changes, and updates the counts.
  void record(std::string_view id, const RevTree& before, const RevTree& after);
  void check_acceptance(std::string_view id, const std::optional<Acceptance>& acceptance,
                        const Leaf* replaced) const;
  // Must be called when a design document has been written. `body` is that of its winner, which may be
  // deleted.
  void design_document_written(std::string_view id, const Leaf& winner, std::string_view body);
  std::size_t revs_limit();
  void record_purge(const std::string& id, std::span<const Revision> revisions);
  void record_purged_document(const std::string& id, const RevTree& before);
  void renew_winner(const std::string& id, const RevTree& before, RevTree after);

  kv::Transaction& tx_;
  const Database database_;
  const WriteRules& rules_;
  bool is_validated_ = false;  // the database has validators
  ContentWriter contents_;
  std::uint16_t next_user_version_ = 0;
  std::optional<std::size_t> revs_limit_;
  std::set<std::string, std::less<>> written_;
  std::vector<std::string> design_documents_;
  std::int64_t docs_ = 0;
  std::int64_t deleted_ = 0;
  std::int64_t bytes_ = 0;
  OldSizes old_;  // changes of the counters
  std::int64_t purge_records_ = 0;
};

/// Edits many documents, in as many transactions as their sizes need. Documents with an error (including
/// those of Catalog::check_document()) do not prevent the others from being written. Not thread-safe.
class BulkEdit {
 public:
  /// Checks the documents, which takes long for design documents: their database should exist. Ids that are
  /// not given are generated from `rng`. Throws what `checkpoint` throws while design documents are checked.
  /// `documents` must outlive this object.
  BulkEdit(Catalog& catalog, std::string_view database, std::vector<IncomingDocument>& documents, Rng& rng,
           const Checkpoint& checkpoint = {}, WriteRules rules = {});

  /// Writes the next documents. Can be repeated in another transaction. Throws not_found without a database,
  /// and NotValidated if the next document must be validated before.
  void write(kv::Transaction& tx);
  /// Must be called when the last write() is committed. Returns true if there is more to write.
  bool committed();

  /// The documents that are to be written: all, or those that are written first, together.
  std::vector<const IncomingDocument*> unwritten(bool all) const;
  /// These validators have validated what unwritten() returned: `verdicts` has one for each. Others that were
  /// validated before must have been so by the same ones.
  void validated(Validators validators, std::span<const Verdict> verdicts);

  /// The results in the order of the documents. Call it last.
  std::vector<WriteResult> take_results() { return std::move(results_); }

 private:
  Catalog& catalog_;
  const std::string database_;
  const std::vector<IncomingDocument>& documents_;
  const WriteRules rules_;
  Validators validators_;
  std::vector<std::optional<Acceptance>> acceptances_;  // of `documents_`
  std::vector<WriteResult> results_;
  std::vector<std::size_t> accepted_;  // indexes of documents
  std::size_t next_ = 0;               // of `accepted_`
  std::vector<WriteResult> batch_;     // of the last write()
};

/// Replaces the body of a document's winner in a transaction without other writes to the database, on behalf
/// of the server: validators do not apply. `body` is a JSON object, with stubs of the attachments that
/// remain. Throws Catalog::check_document()'s errors.
void replace_winner(kv::Transaction& tx, const Database& database, const std::string& id, const Leaf& winner,
                    std::string_view body);

/// The path of a replicated revision, as far as its sender knows it. Throws bad_request for a document
/// without a revision.
RevisionPath given_path(const IncomingDocument& document);

/// Returns true if there is a design document among them.
bool has_design_documents(std::span<const IncomingDocument> documents);

/// Runs a BulkEdit; returns its results.
std::vector<WriteResult> bulk_edit(kv::Database& store, Catalog& catalog, std::string_view database,
                                   std::vector<IncomingDocument>& documents, Rng& rng,
                                   const Checkpoint& checkpoint = {});

/// Writes replicated revisions (Writer::replicate()) in the same way. Not thread-safe.
class BulkReplicate {
 public:
  /// Throws bad_request for a revision without a number. Of `rules` only `check` is used.
  BulkReplicate(Catalog& catalog, std::string_view database, std::vector<IncomingDocument> documents,
                const WriteRules& rules = {});

  // As in BulkEdit.
  void write(kv::Transaction& tx);
  bool committed();
  std::vector<const IncomingDocument*> unwritten(bool all) const;
  void validated(Validators validators, std::span<const Verdict> verdicts);

  /// The results of the rejected documents. Call it last.
  std::vector<WriteResult> take_refused() { return std::move(refused_); }

 private:
  Catalog& catalog_;
  const std::string database_;
  // Revisions of one document.
  struct Part {
    std::vector<IncomingDocument> revisions;
    std::vector<std::optional<Acceptance>> acceptances;  // of these
  };

  Validators validators_;
  std::vector<WriteResult> refused_;
  std::vector<Part> parts_;
  std::size_t next_ = 0;                    // of `parts_`
  std::size_t written_ = 0;                 // parts in the last write()
  std::vector<WriteResult> batch_refused_;  // of these
};

/// Runs a BulkReplicate; returns its results.
std::vector<WriteResult> bulk_replicate(kv::Database& store, Catalog& catalog, std::string_view database,
                                        std::vector<IncomingDocument> documents);

}  // namespace divan::docs
