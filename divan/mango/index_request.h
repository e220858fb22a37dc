// Indexes that clients create and delete with `_index`: the design documents that define them
// (https://docs.couchdb.org/en/stable/api/database/find.html#db-index).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::mango {

/// What an index is built as.
enum class IndexType {
  json,  // a view
  text,  // a full-text index
};
/// The type of this name; nullopt if it is unknown.
std::optional<IndexType> index_type(std::string_view name);

/// The request of `POST /db/_index`. A value type.
struct IndexRequest {
  std::string design_document;  // its id
  std::string name;
  IndexType type = IndexType::json;
  std::string definition;  // its value in the design document, as JSON
  // `options.partitioned` of the design document; nullopt: the default.
  std::optional<bool> is_partitioned{};

  /// Parses a request in json::compact()'s form. A design document or a name that is not given is a digest of
  /// the definition. Throws CouchDB's errors (400), among them those of Sort::parse() and
  /// selector::Selector::parse(), and 503 for the type `nouveau`.
  static IndexRequest parse(std::string_view json);

  /// The design document with the index: its body, `body` is the present one ({} for a new document). Returns
  /// nullopt if the index exists. Throws invalid_ddoc_lang (400) for a design document in another language.
  std::optional<std::string> add_to(std::string_view body) const;

 private:
  void check_partitioned(std::string_view body) const;
};

/// The body of a design document without an index; "{}" if nothing is left of it. Returns nullopt if it has
/// no index of this type and name; an empty name stands for all of its indexes, of all types.
std::optional<std::string> without_index(std::string_view body, IndexType type, std::string_view name);

/// Parses the request of `POST /db/_index/_bulk_delete`: returns ids of design documents. Throws CouchDB's
/// errors (400).
std::vector<std::string> parse_bulk_delete(std::string_view json);

}  // namespace divan::mango
