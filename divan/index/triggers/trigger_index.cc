#include "divan/index/triggers/trigger_index.h"

#include <algorithm>
#include <set>

#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/index/triggers/state.h"

namespace divan::index::triggers {
namespace {

// A deleted document as triggers see it: with the members of its last state that the deletion did not
// replace.
std::string deleted_text(const SourceDocument& document) {
  std::string text;
  docs::append_open_document(text, document.change.id, document.change.winner, true, document.tombstone);
  std::set<std::string, std::less<>> names;
  json::for_each_member(document.tombstone, [&](std::string_view name, std::string_view) {
    names.emplace(name);
    return true;
  });
  json::for_each_member(document.last_body, [&](std::string_view name, std::string_view value) {
    if (!names.contains(name)) ((((text += ",\"") += name) += "\":") += value);
    return true;
  });
  return text += '}';
}

}  // namespace

TriggerIndex::TriggerIndex(std::shared_ptr<const Definition> definition, TriggerOrigin origin,
                           std::shared_ptr<const views::JsFunctions> functions, const Jobs& jobs,
                           const js::Limits& limits)
    : definition_(std::move(definition)),
      origin_(std::move(origin)),
      functions_(std::move(functions)),
      jobs_(jobs),
      limits_(limits),
      signature_(trigger_signature(origin_.design_document, definition_->name)) {}

IndexPtr TriggerIndex::within(const BuildLimits& build) const {
  js::Limits limits = limits_;
  limits.urgent = build.urgent;
  limits.waited_for = true;
  limits.on_slow = build.on_slow;
  limits.stop = build.stop;
  return std::make_shared<TriggerIndex>(definition_, origin_, functions_, jobs_, limits);
}

kv::Versionstamp TriggerIndex::begin(kv::Transaction& tx, const docs::Database& database,
                                     const IndexKeys& keys) const {
  write_state(tx, keys, *definition_, docs::last_sequence(tx, database));
  return read_sequence(tx, keys);
}

// Empty if the document cannot lead to a job.
std::string TriggerIndex::text_of(const SourceDocument& document) const {
  if (docs::is_design(document.change.id) || document.change.winner.generation == 0) return {};
  if (!document.change.deleted) return document.json;
  return definition_->fires_on(Event::deleted) ? deleted_text(document) : std::string();
}

bool TriggerIndex::selects(TriggerBatch& batch, std::size_t document, std::string_view text) const {
  if (text.empty()) return false;
  if (!definition_->selector) return true;
  try {
    return definition_->selector->matches(text);
  } catch (const Error& error) {
    batch.add_failure(document, error.reason());
    return false;
  }
}

// A function that exceeds its limits for several documents cannot build an index. But these documents must
// not delay the jobs of others for good: they are divided until each part can be mapped, and are then left
// out.
std::unique_ptr<MappedBatch> TriggerIndex::map(std::span<const SourceDocument> documents) const {
  for (;; documents = documents.first((documents.size() + 1) / 2)) {
    auto batch = std::make_unique<TriggerBatch>(documents, definition_, origin_, jobs_);
    try {
      functions_ ? map_with_function(documents, *batch) : map_with_template(documents, *batch);
      return batch;
    } catch (const FunctionFailed&) {
      if (documents.size() == 1) throw;
    }
  }
}

void TriggerIndex::map_with_template(std::span<const SourceDocument> documents, TriggerBatch& batch) const {
  for (std::size_t i = 0; i < documents.size() && batch.bytes() < views::kFullBatchBytes; ++i) {
    batch.add_document(documents[i].change.id);
    const std::string text = text_of(documents[i]);
    if (!selects(batch, i, text)) continue;
    try {
      batch.add_job(i, definition_->job->fill(text));
    } catch (const Error& error) { batch.add_failure(i, error.reason()); }
  }
}

void TriggerIndex::map_with_function(std::span<const SourceDocument> documents, TriggerBatch& batch) const {
  // Those that the function is not called for are passed as deleted.
  std::vector<SourceDocument> selected;
  std::vector<std::string> failures(documents.size());
  for (const SourceDocument& document : documents) {
    SourceDocument& copy = selected.emplace_back(SourceDocument{.change = document.change});
    copy.json = text_of(document);
    copy.change.deleted = copy.json.empty();
    if (copy.change.deleted || !definition_->selector) continue;
    try {
      copy.change.deleted = !definition_->selector->matches(copy.json);
    } catch (const Error& error) {
      failures[selected.size() - 1] = error.reason();
      copy.change.deleted = true;
    }
  }
  const views::SourceTexts texts(selected, views::ViewOptions());
  functions_->map(texts, limits_, batch,
                  [&](std::size_t document, std::size_t, std::span<const js::Emitted> emitted) {
                    for (const js::Emitted& one : emitted) {
                      try {
                        if (!json::is_compact(one.key)) throw bad_request("What it emits is not JSON.");
                        batch.add_job(document, parse_job(one.key));
                      } catch (const Error& error) { batch.add_failure(document, error.reason()); }
                    }
                  });
  for (std::size_t i = 0; i < batch.documents(); ++i) {
    if (!failures[i].empty()) batch.add_failure(i, failures[i]);
  }
}

}  // namespace divan::index::triggers
