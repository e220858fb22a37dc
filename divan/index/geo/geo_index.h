// The spatial indexes of a design document, as one index.
//
// Their rows are stored as those of views, in three views for each index, whose keys are in raw collation.
// The first two have a row for each cell that covers a geometry (cells.h): the first those of points, the
// second those of others, so that a search for points needs not look for larger cells. The key is the cell's
// name, the value [revision, geometry] if it has one cell only, otherwise [revision, n, cell, ...]: its
// number among the document's geometries, and the names of its cells. The third has the geometries of several
// cells, as [revision, geometry], with their numbers as keys.
#pragma once

#include "divan/index/views/slow_documents.h"
#include "divan/index/views/view_index.h"

namespace divan::index::geo {

inline constexpr std::string_view kKind = "st_indexes";

/// The views of an index.
struct GeoViews {
  int points = 0;
  int cells = 0;
  int geometries = 0;
};

/// See index.h. Immutable, hence thread-safe.
class GeoIndex final : public Index {
 public:
  GeoIndex(std::shared_ptr<const views::ViewIndex> rows, std::map<std::string, GeoViews> names)
      : rows_(std::move(rows)), names_(std::move(names)) {}

  std::string_view kind() const override { return kKind; }
  const std::string& signature() const override { return rows_->signature(); }
  const std::string& design_document() const override { return rows_->design_document(); }
  bool automatic() const override { return rows_->automatic(); }
  IndexPtr within(const BuildLimits& limits) const override;
  std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const override {
    return rows_->map(documents);
  }
  std::unique_ptr<IndexWork> more_work(kv::Database& store, const IndexKeys& keys,
                                       bool resume_only) const override {
    return rows_->more_work(store, keys, resume_only);
  }
  bool needs_work(kv::Transaction& tx, const IndexKeys& keys) const override {
    return rows_->needs_work(tx, keys);
  }

  /// The number of documents with rows in one of the indexes, up to kMaxCounted.
  std::int64_t count_documents(kv::Transaction& tx, const IndexKeys& keys, const GeoViews& views) const;
  static constexpr std::int64_t kMaxCounted = 100'000;

  /// The views of the index with this name; null for an unknown name.
  const GeoViews* find(const std::string& name) const;

 private:
  const std::shared_ptr<const views::ViewIndex> rows_;
  const std::map<std::string, GeoViews> names_;
};

/// The most bytes of a geometry's JSON.
inline constexpr std::size_t kMaxGeometryBytes = 5'900'000;

/// Adds the rows of the geometries that a revision of a document emits for an index. A geometry that cannot
/// be indexed is left out, and recorded (left_out.h).
void add_rows(views::ViewBatch& batch, std::size_t document, const docs::Revision& revision,
              const std::string& name, const GeoViews& views, std::span<const js::Emitted> emitted);

}  // namespace divan::index::geo
