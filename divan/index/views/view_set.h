// The views of a design document: their definitions, and the sandbox and limits of their functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "divan/collation/collation.h"
#include "divan/index/views/fan_out.h"
#include "divan/js/pool.h"

namespace divan::index::views {

using collation::Collation;

/// A view of a design document.
struct View {
  std::string name;
  std::string map;     // source; of Mango's indexes: JSON (field_map.h)
  std::string reduce;  // source, or the name of a built-in function; empty: none
  int number = 0;      // its index among the views sorted by name; part of the keys of its rows
  Collation collation = Collation::unicode;  // `options.collation` of the view may be "raw"

  /// Returns true if the view has partial reductions (reduce_nodes.h).
  bool has_reduce_nodes() const;
};

/// The `options` of a design document
/// (https://docs.couchdb.org/en/stable/ddocs/views/intro.html, "View options").
struct ViewOptions {
  bool include_design = false;  // design documents are mapped, too
  bool local_seq = false;       // documents have `_local_seq`, their update sequence
  bool is_partitioned = false;  // rows are ordered by partition first; only in a partitioned database

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
  /// The encoded keys of rows begin with partition_prefix() (rows.h).
  bool is_partitioned = false;

  /// The part of the design document in which map functions find modules.
  std::string root() const { return R"({"views":{"lib":)" + lib + "}}"; }
};

/// Immutable, hence thread-safe. The pool must outlive it.
class ViewSet {
 public:
  ViewSet(Origin origin, std::map<std::string, View> views, js::Pool& pool, const js::Limits& limits,
          const FanOut& fan_out)
      : origin_(std::move(origin)),
        views_(std::move(views)),
        pool_(pool),
        limits_(limits),
        fan_out_(fan_out) {}
  /// A copy with other limits.
  ViewSet(const ViewSet& other, const js::Limits& limits)
      : ViewSet(other.origin_, other.views_, other.pool_, limits, other.fan_out_) {}

  const std::map<std::string, View>& views() const { return views_; }
  /// Returns null if there is no such view.
  const View* find(std::string_view name) const;
  js::Pool& pool() const { return pool_; }
  const js::Limits& limits() const { return limits_; }
  const FanOut& fan_out() const { return fan_out_; }
  const Origin& origin() const { return origin_; }

 private:
  const Origin origin_;
  const std::map<std::string, View> views_;
  js::Pool& pool_;
  const js::Limits limits_;
  const FanOut fan_out_;
};

}  // namespace divan::index::views
