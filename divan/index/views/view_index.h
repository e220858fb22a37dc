// The views of a design document, as one index.
#pragma once

#include <map>

#include "divan/index/index.h"
#include "divan/index/views/collation.h"
#include "divan/index/views/fan_out.h"
#include "divan/index/views/slow_documents.h"
#include "divan/js/pool.h"

namespace divan::index::views {

class ViewBatch;

/// A view of a design document.
struct View {
  std::string name;
  std::string map;     // source
  std::string reduce;  // source, or the name of a built-in function; empty: none
  int number = 0;      // its index among the views sorted by name; part of the keys of its rows
  Collation collation = Collation::unicode;  // `options.collation` of the view may be "raw"

  /// Returns true if the view keeps partial reductions (reduce_nodes.h).
  bool has_reduce_nodes() const;
};

/// The `options` of a design document
/// (https://docs.couchdb.org/en/stable/ddocs/views/intro.html, "View options").
struct ViewOptions {
  bool include_design = false;  // design documents are mapped, too
  bool local_seq = false;       // documents have `_local_seq`, their update sequence

  bool operator==(const ViewOptions&) const = default;
};

/// Maximum size of a row with its key and the document's id: it must fit in one transaction.
inline constexpr std::size_t kMaxRowBytes = 6'000'000;
/// Maximum size of all rows that one document emits.
inline constexpr std::size_t kMaxEmittedBytes = 64'000'000;
/// A batch is full if its rows have at least this size.
inline constexpr std::size_t kFullBatchBytes = 16'000'000;

/// The database and design document of the views, and what the views share.
struct Origin {
  js::Owner owner;
  std::string lib = "{}";  ///< `views.lib`: the modules that map functions may require, as JSON
};

/// See index.h. Immutable, hence thread-safe. The pool must outlive it.
class ViewIndex final : public Index, public std::enable_shared_from_this<ViewIndex> {
 public:
  ViewIndex(Origin origin, std::map<std::string, View> views, const ViewOptions& options, bool automatic,
            js::Pool& pool, const js::Limits& limits, const FanOut& fan_out,
            std::shared_ptr<SlowDocuments> slow = nullptr);
  /// A copy with other limits.
  ViewIndex(const ViewIndex& other, const js::Limits& limits);

  std::string_view kind() const override { return "views"; }
  const std::string& signature() const override { return signature_; }
  const std::string& design_document() const override { return origin_.owner.design_document; }
  bool automatic() const override { return automatic_; }
  IndexPtr within(const BuildLimits& limits) const override;
  std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const override;
  std::unique_ptr<IndexWork> more_work(kv::Database& store, const IndexKeys& keys,
                                       bool resume_only) const override;
  bool needs_work(kv::Transaction& tx, const IndexKeys& keys) const override;

  const std::map<std::string, View>& views() const { return views_; }
  /// Returns null if there is no such view.
  const View* find(std::string_view name) const;
  js::Pool& pool() const { return pool_; }
  const js::Limits& limits() const { return limits_; }
  const FanOut& fan_out() const { return fan_out_; }
  const Origin& origin() const { return origin_; }

 private:
  void add_rows(const js::MapResult& result, std::size_t number, std::span<const SourceDocument> documents,
                std::size_t position, std::vector<std::size_t>& strikes, ViewBatch& batch) const;
  Duration invocation() const;
  void reject_slow(std::span<const SourceDocument> documents, std::span<const std::size_t> positions) const;

  const Origin origin_;
  const std::map<std::string, View> views_;
  const ViewOptions options_;
  const bool automatic_;
  js::Pool& pool_;
  const js::Limits limits_;
  const FanOut fan_out_;
  const std::shared_ptr<SlowDocuments> slow_;  // may be null
  js::Program program_;
  std::string signature_;
};

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
/// its language is not JavaScript.
void check_language(std::string_view body, std::string_view view_name);

/// Parses the views of a design document. Returns null if it has none or its language is not JavaScript.
/// Throws invalid_design_doc (400).
std::shared_ptr<const ViewIndex> parse_views(const std::string& design_id, std::string_view body,
                                             js::Pool& pool, const js::Limits& limits,
                                             const FanOut& fan_out = {},
                                             const docs::Database* database = nullptr,
                                             std::shared_ptr<SlowDocuments> slow = nullptr);

}  // namespace divan::index::views
