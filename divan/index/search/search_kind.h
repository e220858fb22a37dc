// Full-text indexes as a kind of index: what `indexes` of design documents define.
// https://docs.couchdb.org/en/stable/ddocs/search.html
#pragma once

#include "divan/index/search/search_index.h"
#include "divan/index/views/slow_documents.h"

namespace divan::index::search {

/// Thread-safe. The pool must outlive it and its indexes.
class SearchKind final : public Kind {
 public:
  explicit SearchKind(js::Pool& pool, const js::Limits& limits = {.urgent = true, .waited_for = true})
      : pool_(pool), limits_(limits) {}

  std::string_view name() const override { return kKind; }
  std::vector<IndexPtr> indexes(const std::string& design_id, std::string_view body,
                                const docs::Database* database = nullptr) const override;
  void check(const std::string& design_id, std::string_view body,
             const docs::Checkpoint& checkpoint) const override;

 private:
  js::Pool& pool_;
  const js::Limits limits_;
  const std::shared_ptr<views::SlowDocuments> slow_ = std::make_shared<views::SlowDocuments>();
};

}  // namespace divan::index::search
