#include "divan/index/search/search_index.h"

#include "divan/index/search/merger.h"
#include "divan/index/search/search_batch.h"

namespace divan::index::search {

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
  const auto add = [&](std::size_t document, std::size_t, std::span<const js::Emitted> emitted) {
    const auto refuse = [&](std::string_view reason) { batch->add_failure(document, reason); };
    batch->add_fields(document, fields_of(emitted, refuse));
  };
  definition_.functions->map(views::SourceTexts(documents, views::ViewOptions()), limits_, *batch, add);
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
