#include "divan/index/search/search_index.h"

#include "divan/index/search/merger.h"
#include "divan/index/search/search_batch.h"

namespace divan::index::search {
namespace {

// Adds the documents of the first texts, at least of one, with their fields to `batch`, which is empty.
void map_text(const TextMap& map, const text::Analyzer& analyzer, const views::SourceTexts& texts,
              SearchBatch& batch) {
  texts.add_documents_before(0, batch);
  for (std::size_t number = 0; number < texts.size(); ++number) {
    if (batch.bytes() >= views::kFullBatchBytes) return;
    texts.add_documents_before(number + 1, batch);
    const std::size_t document = texts.index(number);
    try {
      map.visit_fields(texts.text(number), analyzer,
                       [&](const Field& field) { batch.add_field(document, field); });
      batch.end_fields(document);
    } catch (const Error& error) {  // the filter takes too long
      batch.add_failure(document, error.reason());
    }
  }
}

}  // namespace

IndexPtr SearchIndex::within(const BuildLimits& build) const {
  js::Limits limits = limits_;
  limits.urgent = build.urgent;
  limits.waited_for = build.waited_for;
  limits.on_slow = build.on_slow;
  limits.stop = build.stop;
  return std::make_shared<SearchIndex>(definition_, limits);
}

std::unique_ptr<MappedBatch> SearchIndex::map(std::span<const SourceDocument> documents) const {
  auto batch = std::make_unique<SearchBatch>(definition_.analyzer);
  const views::SourceTexts texts(documents, views::ViewOptions());
  if (definition_.text_map) {
    map_text(*definition_.text_map, analyzer(), texts, *batch);
    return batch;
  }
  const auto add = [&](std::size_t document, std::size_t, std::span<const js::Emitted> emitted) {
    const auto refuse = [&](std::string_view reason) { batch->add_failure(document, reason); };
    for (const auto& field : fields_of(emitted, refuse)) batch->add_field(document, field);
    batch->end_fields(document);
  };
  definition_.functions->map(texts, limits_, *batch, add);
  return batch;
}

std::unique_ptr<IndexWork> SearchIndex::more_work(kv::Database& store, const IndexKeys& keys,
                                                  bool resume_only) const {
  return resume_only ? nullptr : merge_piece(store, keys);
}

bool SearchIndex::needs_work(kv::Transaction& tx, const IndexKeys& keys) const {
  return is_merge_due(read_state(tx, SearchKeys(keys)));
}

}  // namespace divan::index::search
