// A trigger of a design document: an index whose rows are jobs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "divan/index/triggers/definition.h"
#include "divan/index/triggers/trigger_batch.h"
#include "divan/index/views/js_functions.h"

namespace divan::index::triggers {

/// See index.h. Immutable, hence thread-safe. The job queue must outlive it.
class TriggerIndex final : public Index {
 public:
  /// `functions` has one, or is null if the trigger has a template.
  TriggerIndex(std::shared_ptr<const Definition> definition, TriggerOrigin origin,
               std::shared_ptr<const views::JsFunctions> functions, const Jobs& jobs,
               const js::Limits& limits);

  std::string_view kind() const override { return kKind; }
  const std::string& signature() const override { return signature_; }
  const std::string& design_document() const override { return origin_.design_document; }
  std::string_view name() const override { return definition_->name; }
  bool automatic() const override { return true; }
  IndexPtr within(const BuildLimits& limits) const override;
  std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const override;
  std::unique_ptr<IndexWork> more_work(kv::Database&, const IndexKeys&, bool) const override {
    return nullptr;
  }
  bool needs_work(kv::Transaction&, const IndexKeys&) const override { return false; }
  bool allows_small_builds() const override { return functions_ == nullptr; }
  bool reads_history() const override { return definition_->tracks_documents(); }
  kv::Versionstamp begin(kv::Transaction& tx, const docs::Database& database,
                         const IndexKeys& keys) const override;

 private:
  bool selects(TriggerBatch& batch, std::size_t document, std::string_view text) const;
  void map_with_template(std::span<const SourceDocument> documents, TriggerBatch& batch) const;
  void map_with_function(std::span<const SourceDocument> documents, TriggerBatch& batch) const;
  std::string text_of(const SourceDocument& document) const;

  const std::shared_ptr<const Definition> definition_;
  const TriggerOrigin origin_;
  const std::shared_ptr<const views::JsFunctions> functions_;
  const Jobs jobs_;
  const js::Limits limits_;
  const std::string signature_;
};

}  // namespace divan::index::triggers
