#include "divan/index/search/search_index.h"

#include "divan/index/search/merger.h"

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
  definition_.fields->map(views::SourceTexts(documents, views::ViewOptions()), limits_, *batch);
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
