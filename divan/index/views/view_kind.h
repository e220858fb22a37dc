// Views as a kind of index: what design documents define.
#pragma once

#include "divan/index/views/slow_documents.h"
#include "divan/index/views/view_index.h"

namespace divan::index::views {

/// Views as a kind of index. Thread-safe. The pool must outlive it and its indexes.
class ViewKind final : public Kind {
 public:
  explicit ViewKind(js::Pool& pool, const js::Limits& limits = {.urgent = true, .waited_for = true},
                    const FanOut& fan_out = {})
      : pool_(pool), limits_(limits), fan_out_(fan_out) {}

  std::string_view name() const override { return "views"; }
  std::vector<IndexPtr> indexes(const std::string& design_id, std::string_view body,
                                const docs::Database* database = nullptr) const override;
  void check(const std::string& design_id, std::string_view body,
             const docs::Checkpoint& checkpoint) const override;

 private:
  js::Pool& pool_;
  const js::Limits limits_;
  const FanOut fan_out_;
  const std::shared_ptr<SlowDocuments> slow_ = std::make_shared<SlowDocuments>();
};

/// Throws unknown_query_language (500, as CouchDB does) if the design document has a view of this name and
/// its language is neither JavaScript nor that of Mango.
void check_language(std::string_view body, std::string_view view_name);

/// Parses the views of a design document. Returns null if it has none or its language is another one than
/// JavaScript and that of Mango.
/// Throws invalid_design_doc (400).
std::shared_ptr<const ViewIndex> parse_views(const std::string& design_id, std::string_view body,
                                             js::Pool& pool, const js::Limits& limits,
                                             const FanOut& fan_out = {},
                                             const docs::Database* database = nullptr,
                                             std::shared_ptr<SlowDocuments> slow = nullptr);

}  // namespace divan::index::views
