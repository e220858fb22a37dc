// Spatial indexes as a kind of index: what `st_indexes` of design documents define.
#pragma once

#include "divan/index/geo/geo_index.h"

namespace divan::index::geo {

/// Thread-safe. The pool must outlive it and its indexes.
class GeoKind final : public Kind {
 public:
  explicit GeoKind(js::Pool& pool, const js::Limits& limits = {.urgent = true, .waited_for = true})
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

/// Parses the spatial indexes of a design document. Returns null if it has none, or its language is another
/// one than JavaScript. Throws invalid_design_doc (400). `database` and `slow` may be null.
std::shared_ptr<const GeoIndex> parse_geo_indexes(const std::string& design_id, std::string_view body,
                                                  js::Pool& pool, const js::Limits& limits,
                                                  const docs::Database* database = nullptr,
                                                  std::shared_ptr<views::SlowDocuments> slow = nullptr);

}  // namespace divan::index::geo
