#include "divan/index/geo/matcher.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "divan/index/geo/geos.h"

namespace divan::index::geo {
namespace {

constexpr std::pair<std::string_view, Relation> kRelations[] = {
    {"intersects", Relation::intersects}, {"disjoint", Relation::disjoint},
    {"contains", Relation::contains},     {"within", Relation::within},
    {"covers", Relation::covers},         {"covered_by", Relation::covered_by},
    {"touches", Relation::touches},       {"crosses", Relation::crosses},
    {"overlaps", Relation::overlaps},     {"equals", Relation::equals},
};

constexpr std::size_t kKinds = 3;

// Geometries in a plane, one for each kind of part; null if the geometry has no part of that kind.
using Planar = std::array<GeosGeometry, kKinds>;

// The plane is the Earth, cut along a meridian, and unrolled. It is cut opposite to the middle of the query,
// so that the query is in one piece; pieces of other geometries that are cut elsewhere are joined.
class Frame {
 public:
  explicit Frame(const Geometry& query)
      : west_(query.middle().longitude - 180), is_closed_(goes_around(query)) {}

  Planar place(const Geometry& geometry) const {
    std::array<std::vector<GeosGeometry>, kKinds> pieces;
    bool is_cut = false, is_divided = false;
    for (const auto& part : geometry.parts()) {
      auto& same_kind = pieces[static_cast<std::size_t>(part.kind)];
      const auto box = part.box();
      const double offset = offset_of(box.west);
      is_cut |= touches_cut(box, offset);
      if (is_closed_ && part.kind == Part::Kind::point) {
        same_kind.push_back(to_geos(off_the_edges(part, offset)));
        continue;
      }
      if (box.east + offset <= west_ + 360) {
        same_kind.push_back(to_geos(part, offset));
        continue;
      }
      // The part goes beyond the cut, and on from the other side of the plane.
      is_divided = true;
      for (const double turn : {0.0, -360.0}) {
        auto inside = checked(GEOSIntersection_r(geos(), to_geos(part, offset + turn).get(), plane().get()));
        if (!checked(GEOSisEmpty_r(geos(), inside.get()))) same_kind.push_back(std::move(inside));
      }
    }
    Planar placed;
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (pieces[kind].empty()) continue;
      if (is_divided || (is_cut && pieces[kind].size() > 1)) {
        placed[kind] = joined(std::move(pieces[kind]), static_cast<Part::Kind>(kind));
      } else {
        placed[kind] = to_multi(std::move(pieces[kind]), static_cast<Part::Kind>(kind));
      }
    }
    return placed;
  }

 private:
  static bool goes_around(const Geometry& query) {
    return std::ranges::any_of(query.parts(), [](const Part& part) {
      const auto box = part.box();
      return part.kind == Part::Kind::polygon && box.east - box.west >= 360;
    });
  }

  // A polygon that goes around the Earth has edges in the plane that it does not have on the Earth: the cut,
  // and the poles. Points there are moved into the plane by less than a millimetre.
  Part off_the_edges(Part point, double offset) const {
    constexpr double kStep = 1e-9;
    auto& position = point.rings.front().front();
    position.longitude = std::clamp(position.longitude + offset, west_ + kStep, west_ + 360 - kStep);
    position.latitude = std::clamp(position.latitude, -90 + kStep, 90 - kStep);
    return point;
  }

  // How far a part that begins at `west` is moved, so that it begins in the plane.
  double offset_of(double west) const { return -360 * std::floor((west - west_) / 360); }

  // Returns true if a part may be one of several pieces into which something was cut.
  bool touches_cut(const Box& box, double offset) const {
    return box.east + offset > west_ + 360 || box.west == -180 || box.east == 180;
  }

  GeosGeometry plane() const {
    return checked(GEOSGeom_createRectangle_r(geos(), west_, -90, west_ + 360, 90));
  }

  // Lines are joined at their ends only: a union would have nodes where they cross each other, in rounded
  // places.
  static GeosGeometry joined(std::vector<GeosGeometry> pieces, Part::Kind kind) {
    std::vector<GEOSGeometry*> released;
    for (auto& piece : pieces) released.push_back(piece.release());
    const auto all = checked(GEOSGeom_createCollection_r(geos(), GEOS_GEOMETRYCOLLECTION, released.data(),
                                                         static_cast<unsigned>(released.size())));
    return checked(kind == Part::Kind::line ? GEOSLineMerge_r(geos(), all.get())
                                            : GEOSUnaryUnion_r(geos(), all.get()));
  }

  const double west_;
  const bool is_closed_;  // the query is a polygon that goes around the Earth
};

}  // namespace

std::optional<Relation> find_relation(std::string_view name) {
  for (const auto& [known, relation] : kRelations) {
    if (known == name) return relation;
  }
  return std::nullopt;
}

struct Matcher::Impl {
  Impl(const Geometry& query, Relation the_relation) : frame(query), relation(the_relation) {
    const GeosTimeLimit limit(kGeosTime);
    shapes = frame.place(query);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      if (shapes[kind]) prepared[kind] = prepare(*shapes[kind]);
    }
  }

  bool related(std::size_t kind, const GEOSGeometry* other) const {
    const auto* const query = prepared[kind].get();
    const auto handle = geos();
    switch (relation) {
      case Relation::intersects: return checked(GEOSPreparedIntersects_r(handle, query, other));
      case Relation::disjoint: return checked(GEOSPreparedDisjoint_r(handle, query, other));
      case Relation::contains: return checked(GEOSPreparedContains_r(handle, query, other));
      case Relation::within: return checked(GEOSPreparedWithin_r(handle, query, other));
      case Relation::covers: return checked(GEOSPreparedCovers_r(handle, query, other));
      case Relation::covered_by: return checked(GEOSPreparedCoveredBy_r(handle, query, other));
      case Relation::touches: return checked(GEOSPreparedTouches_r(handle, query, other));
      case Relation::crosses: return checked(GEOSPreparedCrosses_r(handle, query, other));
      case Relation::overlaps: return checked(GEOSPreparedOverlaps_r(handle, query, other));
      case Relation::equals: return checked(GEOSEquals_r(handle, shapes[kind].get(), other));
    }
    return false;
  }

  // Collections of several kinds are compared kind by kind, as GEOS compares none.
  bool matches(const Planar& other) const {
    const auto any_of_query = [&](const GEOSGeometry* one) {
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        if (shapes[kind] && related(kind, one)) return true;
      }
      return false;
    };
    const auto all_of_query = [&](const auto& is_related) {
      for (std::size_t kind = 0; kind < kKinds; ++kind) {
        if (shapes[kind] && !is_related(kind)) return false;
      }
      return true;
    };
    const auto any_of_other = [&](std::size_t kind) {
      return std::ranges::any_of(other, [&](const auto& one) { return one && related(kind, one.get()); });
    };
    const auto all_of_other = [&](std::size_t kind) {
      return std::ranges::all_of(other, [&](const auto& one) { return !one || related(kind, one.get()); });
    };
    switch (relation) {
      case Relation::disjoint: return all_of_query(all_of_other);
      case Relation::within:
      case Relation::covered_by: return all_of_query(any_of_other);
      case Relation::contains:
      case Relation::covers:
        return std::ranges::all_of(other, [&](const auto& one) { return !one || any_of_query(one.get()); });
      case Relation::equals:
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
          if ((shapes[kind] == nullptr) != (other[kind] == nullptr)) return false;
          if (shapes[kind] && !related(kind, other[kind].get())) return false;
        }
        return true;
      default: return !all_of_query([&](std::size_t kind) { return !any_of_other(kind); });
    }
  }

  const Frame frame;
  const Relation relation;
  Planar shapes;
  std::array<GeosPrepared, kKinds> prepared;
};

Matcher::Matcher(const Geometry& query, Relation relation) : impl_(std::make_unique<Impl>(query, relation)) {}
Matcher::~Matcher() = default;
Matcher::Matcher(Matcher&&) noexcept = default;

bool Matcher::matches(const Geometry& geometry) const { return impl_->matches(impl_->frame.place(geometry)); }

}  // namespace divan::index::geo
