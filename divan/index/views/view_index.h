// The views of a design document, as one index.
#pragma once

#include "divan/index/index.h"
#include "divan/index/views/slow_documents.h"
#include "divan/index/views/view_set.h"

namespace divan::index::views {

class ViewBatch;

/// See index.h. Immutable, hence thread-safe. The pool must outlive it.
class ViewIndex final : public Index, public ViewSet, public std::enable_shared_from_this<ViewIndex> {
 public:
  ViewIndex(Origin origin, std::map<std::string, View> views, const ViewOptions& options, bool automatic,
            js::Pool& pool, const js::Limits& limits, const FanOut& fan_out,
            std::shared_ptr<SlowDocuments> slow = nullptr);
  /// A copy with other limits.
  ViewIndex(const ViewIndex& other, const js::Limits& limits);

  std::string_view kind() const override { return "views"; }
  const std::string& signature() const override { return signature_; }
  const std::string& design_document() const override { return origin().owner.design_document; }
  bool automatic() const override { return automatic_; }
  IndexPtr within(const BuildLimits& limits) const override;
  std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const override;
  std::unique_ptr<IndexWork> more_work(kv::Database& store, const IndexKeys& keys,
                                       bool resume_only) const override;
  bool needs_work(kv::Transaction& tx, const IndexKeys& keys) const override;

 private:
  void add_rows(const js::MapResult& result, std::size_t number, std::span<const SourceDocument> documents,
                std::size_t index, std::vector<std::size_t>& strikes, ViewBatch& batch) const;
  Duration invocation() const;
  void reject_slow(std::span<const SourceDocument> documents, std::span<const std::size_t> indices) const;

  const ViewOptions options_;
  const bool automatic_;
  const std::shared_ptr<SlowDocuments> slow_;  // may be null
  js::Program program_;
  std::string signature_;
};

}  // namespace divan::index::views
