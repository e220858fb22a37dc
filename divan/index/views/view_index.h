// The views of a design document, as one index.
#pragma once

#include "divan/index/index.h"
#include "divan/index/views/mapper.h"
#include "divan/index/views/view_set.h"

namespace divan::index::views {

/// See index.h. Immutable, hence thread-safe. The pool must outlive it.
class ViewIndex final : public Index, public ViewSet, public std::enable_shared_from_this<ViewIndex> {
 public:
  /// `signature` is signature_of() the views.
  ViewIndex(Origin origin, std::map<std::string, View> views, const ViewOptions& options, bool automatic,
            std::string signature, std::shared_ptr<const Mapper> mapper, js::Pool& pool,
            const js::Limits& limits, const FanOut& fan_out);
  /// A copy with other limits.
  ViewIndex(const ViewIndex& other, const js::Limits& limits);

  std::string_view kind() const override { return "views"; }
  const std::string& signature() const override { return signature_; }
  const std::string& design_document() const override { return origin().owner.design_document; }
  bool automatic() const override { return automatic_; }
  const Mapper& mapper() const { return *mapper_; }
  IndexPtr within(const BuildLimits& limits) const override;
  std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const override;
  std::unique_ptr<IndexWork> more_work(kv::Database& store, const IndexKeys& keys,
                                       bool resume_only) const override;
  bool needs_work(kv::Transaction& tx, const IndexKeys& keys) const override;

 private:
  const ViewOptions options_;
  const bool automatic_;
  const std::string signature_;
  const std::shared_ptr<const Mapper> mapper_;
};

/// The digest of everything that the rows depend on.
std::string signature_of(const std::map<std::string, View>& views, std::string_view language,
                         std::string_view lib, const ViewOptions& options);

}  // namespace divan::index::views
