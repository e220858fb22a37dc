#include "divan/index/geo/part.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "divan/base/error.h"

namespace divan::index::geo {

Box Part::box() const {
  const auto& outline = rings.front();
  Box box{outline.front().longitude, outline.front().latitude, outline.front().longitude,
          outline.front().latitude};
  for (const auto& position : outline) {
    box.west = std::min(box.west, position.longitude);
    box.east = std::max(box.east, position.longitude);
    box.south = std::min(box.south, position.latitude);
    box.north = std::max(box.north, position.latitude);
  }
  return box;
}

void check_position(const Position& position) {
  if (!(std::abs(position.longitude) <= 180))
    throw bad_request(
        fmt::format("Invalid geometry: the longitude {} is not from -180 to 180", position.longitude));
  if (!(std::abs(position.latitude) <= 90))
    throw bad_request(
        fmt::format("Invalid geometry: the latitude {} is not from -90 to 90", position.latitude));
}

}  // namespace divan::index::geo
