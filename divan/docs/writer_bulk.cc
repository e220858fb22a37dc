// Writes of many documents: BulkEdit and BulkReplicate.
#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/docs/partition.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/writer.h"

namespace divan::docs {
namespace {

// Approximate size of a small document in a transaction, without its body.
constexpr std::size_t kRowsBytes = 1'000;

// Groups the revisions of each document, in parts that fit in a transaction.
std::vector<std::vector<IncomingDocument>> parts_by_id(std::vector<IncomingDocument> documents) {
  std::map<std::string, std::vector<IncomingDocument*>> by_id;
  for (auto& document : documents) by_id[document.id].push_back(&document);
  std::vector<std::vector<IncomingDocument>> parts;
  for (const auto& [id, revisions] : by_id) {
    std::size_t bytes = 0;
    for (IncomingDocument* revision : revisions) {
      const std::size_t size = revision->body.size() + data_bytes(revision->attachments) +
                               (revision->revisions ? kv::kMaxValueBytes : std::size_t{0});
      if (bytes == 0 || bytes + size > kMaxDocumentBytes || parts.back().size() == kMaxRevisionsAtOnce) {
        parts.emplace_back();
        bytes = 0;
      }
      bytes += size;
      parts.back().push_back(std::move(*revision));
    }
  }
  return parts;
}

// Prefetches what writing documents reads, for those of `all` that are likely to fit in the transaction.
template <class All, class FirstOf>
void prefetch_writes(kv::Transaction& tx, Catalog& catalog, std::string_view name, const All& all,
                     const FirstOf& first_of) {
  if (!tx.is_remote()) return;
  std::vector<std::string_view> ids;
  std::size_t bytes = 0;
  for (auto it = all.begin(); it != all.end() && bytes < kFullTransactionBytes; ++it) {
    const IncomingDocument& document = first_of(*it);
    ids.push_back(document.id);
    bytes += kRowsBytes + document.body.size() + data_bytes(document.attachments);
  }
  prefetch_documents(tx, catalog, name, ids, true);
}

// Returns the error if the document must be rejected whatever the database contains.
std::optional<Error> refusal(const Catalog& catalog, const IncomingDocument& document, bool new_edits,
                             const Checkpoint& checkpoint, const WriteRules& rules) {
  std::optional<Error> stopped;
  const Checkpoint pass_on = [&] {
    try {
      if (checkpoint) checkpoint();
    } catch (const Error& error) {
      stopped = error;
      throw;
    }
  };
  try {
    if (rules.check) rules.check(document);
    catalog.check_document(document, new_edits, pass_on);
    return std::nullopt;
  } catch (const Error& error) {
    if (stopped) throw;
    return error;
  }
}

}  // namespace

bool has_design_documents(std::span<const IncomingDocument> documents) {
  return std::ranges::any_of(documents, [](const auto& document) { return is_design(document.id); });
}

BulkEdit::BulkEdit(Catalog& catalog, std::string_view database, std::vector<IncomingDocument>& documents,
                   Rng& rng, const Checkpoint& checkpoint, WriteRules rules)
    : catalog_(catalog),
      database_(database),
      documents_(documents),
      rules_(std::move(rules)),
      acceptances_(documents.size()),
      results_(documents.size()) {
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (documents[i].id.empty()) documents[i].id = rng.uuid();
    results_[i].id = documents[i].id;
    results_[i].error = refusal(catalog, documents[i], true, checkpoint, rules_);
    if (!results_[i].error) accepted_.push_back(i);
  }
}

void BulkEdit::write(kv::Transaction& tx) {
  const auto left = std::span(accepted_).subspan(next_);
  prefetch_writes(
      tx, catalog_, database_, left, [&](std::size_t i) -> const auto& { return documents_[i]; });
  const Database database = catalog_.open(tx, database_);
  if (next_ == 0) {
    // An illegal id fails the whole request, before anything is written.
    for (const std::size_t i : left) check_id_in(database, documents_[i].id);
  }
  Writer writer(tx, database, rules_, validators_);
  batch_.clear();
  for (const std::size_t i : left) {
    // The second edit of a document needs another transaction.
    if (writer.is_full() || writer.was_written(documents_[i].id)) break;
    try {
      batch_.push_back(writer.edit(documents_[i], acceptances_[i]));
    } catch (const NotValidated&) {
      if (batch_.empty()) throw;
      break;
    }
  }
  writer.finish();
}

std::vector<const IncomingDocument*> BulkEdit::unwritten(bool all) const {
  std::vector<const IncomingDocument*> documents;
  for (const std::size_t i : std::span(accepted_).subspan(next_)) {
    documents.push_back(&documents_[i]);
    if (!all) break;
  }
  return documents;
}

void BulkEdit::validated(Validators validators, std::span<const Verdict> verdicts) {
  validators_ = std::move(validators);
  const auto left = std::span(accepted_).subspan(next_);
  DIVAN_CHECK(verdicts.size() <= left.size(), "{} of {} documents were validated", verdicts.size(),
              left.size());
  std::vector<std::size_t> valid;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const std::size_t document = left[i];
    if (i >= verdicts.size()) {
      valid.push_back(document);
      continue;
    }
    results_[document].error = verdicts[i].error;
    acceptances_[document] = verdicts[i].acceptance;
    if (!verdicts[i].error) valid.push_back(document);
  }
  accepted_ = std::move(valid);
  next_ = 0;
}

bool BulkEdit::committed() {
  DIVAN_CHECK(batch_.size() <= accepted_.size() - next_, "{} results for {} documents", batch_.size(),
              accepted_.size() - next_);
  for (auto& result : batch_) results_[accepted_[next_++]] = std::move(result);
  batch_.clear();
  return next_ < accepted_.size();
}

std::vector<WriteResult> bulk_edit(kv::Database& store, Catalog& catalog, std::string_view name,
                                   std::vector<IncomingDocument>& documents, Rng& rng,
                                   const Checkpoint& checkpoint) {
  if (has_design_documents(documents)) store.run([&](kv::Transaction& tx) { catalog.open(tx, name); });
  BulkEdit edit(catalog, name, documents, rng, checkpoint);
  do {
    store.run([&](kv::Transaction& tx) { edit.write(tx); });
  } while (edit.committed());
  return edit.take_results();
}

BulkReplicate::BulkReplicate(Catalog& catalog, std::string_view database,
                             std::vector<IncomingDocument> documents, const WriteRules& rules)
    : catalog_(catalog), database_(database) {
  std::erase_if(documents, [&](const IncomingDocument& document) {
    auto error = refusal(catalog, document, false, {}, rules);
    if (!error) return false;
    const auto path = given_path(document);
    refused_.push_back({document.id, path.revision(), *std::move(error)});
    return true;
  });
  for (auto& revisions : parts_by_id(std::move(documents))) parts_.push_back({std::move(revisions), {}});
}

void BulkReplicate::write(kv::Transaction& tx) {
  const auto left = std::span(parts_).subspan(next_);
  prefetch_writes(
      tx, catalog_, database_, left, [](const auto& part) -> const auto& { return part.revisions.front(); });
  const Database database = catalog_.open(tx, database_);
  if (next_ == 0) {
    for (const auto& part : left) check_id_in(database, part.revisions.front().id);
  }
  Writer writer(tx, database, validators_);
  written_ = 0;
  batch_refused_.clear();
  for (const auto& [revisions, acceptances] : left) {
    const std::string& id = revisions.front().id;
    if (writer.is_full() || writer.was_written(id)) break;
    try {
      if (auto error = writer.replicate(id, revisions, acceptances)) {
        for (const auto& revision : revisions)
          batch_refused_.push_back({revision.id, given_path(revision).revision(), error});
      }
    } catch (const NotValidated&) {
      if (written_ == 0) throw;
      break;
    }
    ++written_;
  }
  writer.finish();
}

std::vector<const IncomingDocument*> BulkReplicate::unwritten(bool all) const {
  std::vector<const IncomingDocument*> documents;
  for (const auto& part : std::span(parts_).subspan(next_)) {
    for (const auto& document : part.revisions) documents.push_back(&document);
    if (!all) break;
  }
  return documents;
}

void BulkReplicate::validated(Validators validators, std::span<const Verdict> verdicts) {
  validators_ = std::move(validators);
  auto verdict = verdicts.begin();
  for (auto& part : std::span(parts_).subspan(next_)) {
    if (verdict == verdicts.end()) break;
    part.acceptances.clear();
    std::erase_if(part.revisions, [&](const IncomingDocument& document) {
      DIVAN_CHECK(verdict != verdicts.end(), "only {} documents were validated", verdicts.size());
      const auto& [error, acceptance] = *verdict++;
      if (error) {
        refused_.push_back({document.id, given_path(document).revision(), error});
      } else {
        part.acceptances.push_back(acceptance);
      }
      return error.has_value();
    });
  }
  std::erase_if(parts_, [](const auto& part) { return part.revisions.empty(); });
}

bool BulkReplicate::committed() {
  next_ += std::exchange(written_, 0);
  std::ranges::move(batch_refused_, std::back_inserter(refused_));
  batch_refused_.clear();
  DIVAN_CHECK(next_ <= parts_.size(), "{} parts of {} were written", next_, parts_.size());
  return next_ < parts_.size();
}

std::vector<WriteResult> bulk_replicate(kv::Database& store, Catalog& catalog, std::string_view name,
                                        std::vector<IncomingDocument> documents) {
  BulkReplicate replicate(catalog, name, std::move(documents));
  do {
    store.run([&](kv::Transaction& tx) { replicate.write(tx); });
  } while (replicate.committed());
  return replicate.take_refused();
}

}  // namespace divan::docs
