// The indexes that queries of Mango may use: those of design documents in the language `query`, which are
// views or full-text indexes, and the documents by id.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "divan/base/json.h"
#include "divan/docs/catalog.h"
#include "divan/index/index.h"
#include "divan/index/search/search_index.h"
#include "divan/index/views/field_map.h"
#include "divan/index/views/view_index.h"

namespace divan::mango {

/// The name of the index of all documents by id.
inline constexpr std::string_view kAllDocuments = "_all_docs";

/// An index. A value type.
struct Index {
  std::string design_document{};  // its id; empty: all documents by id
  std::string name{kAllDocuments};
  std::vector<selector::Path> columns{{"_id"}};  // of a full-text index: none
  // Both null: all documents by id.
  std::shared_ptr<const index::views::ViewIndex> views{};
  std::shared_ptr<const index::search::SearchIndex> text{};

  bool is_all_documents() const { return !views && !text; }
  /// CouchDB's name.
  std::string_view type() const { return views ? "json" : text ? "text" : "special"; }
  /// The index that is built. Must not be called for all documents.
  const index::Index& built() const;
  /// Must be called for views only.
  const index::views::View& view() const { return *views->find(name); }
  const index::views::FieldMap& map() const;
  /// Returns true if it is only for queries of partitions.
  bool is_partitioned() const;
  /// The selector of a partial index as JSON; empty if it has all documents.
  std::string_view filter() const;
  bool is_partial() const { return !filter().empty(); }

  /// Writes the index as `GET /db/_index` shows it.
  void write(json::Writer& writer) const;
};

/// All indexes of a database; that of all documents first, then by design document and name. Omits
/// design documents that are malformed. Reads a snapshot.
std::vector<Index> indexes_of(kv::Transaction& tx, const docs::Database& database, const index::Kinds& kinds);

/// The indexes of an index of views.
std::vector<Index> indexes_in(const std::shared_ptr<const index::views::ViewIndex>& views);

}  // namespace divan::mango
