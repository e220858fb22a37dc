// Triggers as a kind of index: what `triggers` of design documents define. docs/triggers.md
#pragma once

#include "divan/index/triggers/state.h"
#include "divan/index/triggers/trigger_index.h"
#include "divan/index/views/slow_documents.h"

namespace divan::index::triggers {

/// Thread-safe. The arguments must outlive it and its indexes.
class TriggerKind final : public Kind {
 public:
  TriggerKind(const Jobs& jobs, js::Pool& pool,
              const js::Limits& limits = {.urgent = true, .waited_for = true})
      : jobs_(jobs), pool_(pool), limits_(limits) {}

  std::string_view name() const override { return kKind; }
  bool has_rows() const override { return false; }
  std::vector<std::string> kept(kv::Transaction& tx, const docs::Database& database) const override {
    return recorded_triggers(tx, database);
  }
  std::vector<IndexPtr> indexes(const std::string& design_id, std::string_view body,
                                const docs::Database* database = nullptr) const override;
  void check(const std::string& design_id, std::string_view body,
             const docs::Checkpoint& checkpoint) const override;

 private:
  const Jobs jobs_;
  js::Pool& pool_;
  const js::Limits limits_;
  const std::shared_ptr<views::SlowDocuments> slow_ = std::make_shared<views::SlowDocuments>();
};

}  // namespace divan::index::triggers
