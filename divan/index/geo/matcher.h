// Which geometries have a relation to the geometry of a query (OGC 06-103r4, Simple feature access; the
// predicates of DE-9IM).
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "divan/index/geo/geometry.h"

namespace divan::index::geo {

/// The relation of the query's geometry to the document's: the query's contains the document's, for example.
enum class Relation {
  intersects,
  disjoint,
  contains,
  within,
  covers,
  covered_by,
  touches,
  crosses,
  overlaps,
  equals,
};

/// Returns nullopt for an unknown name.
std::optional<Relation> find_relation(std::string_view name);

/// Compares the geometries of documents with a query's. Used by one thread at a time.
class Matcher {
 public:
  /// `query` must be valid. Throws GeometryTooComplex.
  Matcher(const Geometry& query, Relation relation);
  ~Matcher();
  Matcher(Matcher&&) noexcept;

  /// Throws GeometryTooComplex if it takes too much processor time.
  bool matches(const Geometry& geometry) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace divan::index::geo
