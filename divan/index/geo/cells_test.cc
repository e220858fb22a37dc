#include "divan/index/geo/cells.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

#include "divan/index/geo/distance.h"

namespace divan::index::geo {
namespace {

class CellsTest : public testing::Test {
 protected:
  double random(double from, double to) { return std::uniform_real_distribution(from, to)(generator_); }
  /// A box from centimetres to continents, anywhere, also around poles and across the antimeridian.
  Box random_box() {
    const auto length = [&] { return std::pow(10, random(-7, 2)); };
    const double west = random(-180, 180), south = std::max(-90.0, random(-100, 90));
    return {west, south, west + length(), std::min(90.0, south + length())};
  }
  Position random_position(const Box& box) {
    return {std::remainder(random(box.west, box.east), 360), random(box.south, box.north)};
  }
  /// The length of a cell's sides, in degrees: at a corner of a face they are up to a third shorter.
  static double length(Cell cell) {
    const auto [first, last] = cells_below(cell);
    return 90 * std::sqrt(static_cast<double>((last - first) / 2 + 1)) / (1 << 30);
  }
  static bool is_below(Cell leaf, const std::vector<Cell>& cells) {
    return std::ranges::any_of(cells_below(cells),
                               [&](const CellRange& range) { return range.contains(leaf); });
  }

  std::mt19937 generator_{7};
};

TEST_F(CellsTest, ChildrenDivideACell) {
  std::vector<Cell> cells = top_cells();
  for (int i = 0; i < 200; ++i)
    cells.push_back(ancestors(leaf_cell({random(-180, 180), random(-90, 90)}))[i % 12]);
  for (const auto cell : cells) {
    const auto below = children(cell);
    ASSERT_EQ(below.size(), 4);
    EXPECT_EQ(cells_below(below.front()).first, cells_below(cell).first);
    EXPECT_EQ(cells_below(below.back()).last, cells_below(cell).last);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(length(below[i]), length(cell) / 2);
      if (i > 0) { EXPECT_EQ(cells_below(below[i]).first, cells_below(below[i - 1]).last + 2); }
      auto above = ancestors(below[i]);
      EXPECT_EQ(std::ranges::find(above, cell) != above.end(), is_indexed(cell));
    }
  }
  EXPECT_EQ(top_cells().size(), 6);
  EXPECT_EQ(children(leaf_cell({0, 0})), std::vector<Cell>());
  EXPECT_EQ(length(leaf_cell({0, 0})), 90.0 / (1 << 30));
  EXPECT_EQ(length(ancestors(leaf_cell({0, 0})).back()), 90);
}

TEST_F(CellsTest, TheNamesOfCellsStay) {
  // Rows of indexes have them: a change needs another kRowLayout (geo_kind.cc).
  const auto name = [](double longitude, double latitude) {
    return cell_name(leaf_cell({longitude, latitude}));
  };
  EXPECT_EQ(name(-45, 0), "7aaaaaaaaaaaaaab");
  EXPECT_EQ(name(8.54, 47.38), "9aed0321a244b985");
  EXPECT_EQ(name(-73.97, 40.78), "7dcf696958f51833");
  EXPECT_EQ(name(151.2, -33.87), "40cec57246fc8a81");
  EXPECT_EQ(name(15, 78), "989035441d686509");
  EXPECT_EQ(name(10, 90), "9800000000000001");
  EXPECT_EQ(name(0, -90), "b800000000000001");
  EXPECT_EQ(name(180, 5), name(-180, 5));
}

TEST_F(CellsTest, CellsCoverAGeometryClosely) {
  for (int run = 0; run < 2'000; ++run) {
    const Box box = random_box();
    const auto geometry =
        Geometry::rectangle({box.west, box.south, box.east > 180 ? box.east - 360 : box.east, box.north});
    const auto indexed = covering_cells(geometry), searched = query_cells(geometry);
    SCOPED_TRACE(fmt::format("{} {} {} {}", box.west, box.south, box.east, box.north));
    EXPECT_LE(indexed.size(), kMaxCells);
    EXPECT_LE(searched.size(), kMaxCells);
    EXPECT_TRUE(std::ranges::all_of(indexed, is_indexed));
    for (int i = 0; i < 10; ++i) {
      const Cell leaf = leaf_cell(random_position(box));
      EXPECT_TRUE(is_below(leaf, indexed));
      EXPECT_TRUE(is_below(leaf, searched));
    }
    const double size = std::max({box.east - box.west, box.north - box.south, length(leaf_cell({0, 0}))});
    for (const auto cell : searched) EXPECT_LE(length(cell), std::min(90.0, 4 * size + 1e-7));
    for (const auto cell : indexed)
      EXPECT_LE(length(cell), std::min(90.0, size > 5 ? 4 * size : 16 * size + 1e-7));
  }
}

TEST_F(CellsTest, CirclesAroundThePolesAreCoveredClosely) {
  for (const double latitude : {90.0, 89.99, 89.0, 80.0, -90.0, -89.5}) {
    for (const double metres : {10.0, 1'000.0, 100'000.0}) {
      const auto circle = Geometry::ellipse({20, latitude}, metres, metres);
      const double size = 2 * metres / 111'000;
      SCOPED_TRACE(fmt::format("{} m around {}", metres, latitude));
      for (const auto cell : query_cells(circle)) EXPECT_LE(length(cell), 4 * size);
      for (const auto cell : covering_cells(circle)) EXPECT_LE(length(cell), 16 * size);
    }
  }
}

TEST_F(CellsTest, LargeGeometriesAreNotCoveredByEverything) {
  const auto share = [](const Box& box) {
    double sum = 0;
    for (const auto cell : covering_cells(Geometry::rectangle(box)))
      sum += length(cell) * length(cell) / (6 * 90 * 90);
    return sum;
  };
  EXPECT_LE(share({-180, -90, 180, -63}), 0.17);  // Antarctica
  EXPECT_LE(share({19, 41, -169, 82}), 0.3);      // Russia
  EXPECT_LE(share({-74, -34, -34, 5}), 0.2);      // Brazil
}

TEST_F(CellsTest, ManyPartsAreCoveredTogether) {
  std::string wkt;
  for (int i = 0; i < 100; ++i)
    wkt += fmt::format("{}({} {})", i == 0 ? "" : ", ", i % 2 == 0 ? 179.5 : -179.5, i * 0.01);
  const auto geometry = Geometry::from_wkt("MULTIPOINT(" + wkt + ")");
  const auto box = geometry.bounds();
  EXPECT_EQ(std::tie(box.west, box.south, box.east, box.north), std::make_tuple(179.5, 0.0, 180.5, 0.99));
  for (const auto& cells : {covering_cells(geometry), query_cells(geometry)}) {
    EXPECT_LE(cells.size(), kMaxCells);
    for (const auto& part : geometry.parts())
      EXPECT_TRUE(is_below(leaf_cell(part.rings.front().front()), cells));
    for (const auto cell : cells) EXPECT_LE(length(cell), 16);
  }
}

TEST_F(CellsTest, BoundsHaveAllParts) {
  for (int run = 0; run < 2'000; ++run) {
    std::string wkt;
    for (int i = 0; i < 3; ++i) {
      const double west = random(-180, 180), length = random(0, 90);
      wkt += fmt::format("{}({} 0, {} 1)", i == 0 ? "" : ", ", west,
                         west + length > 180 ? west + length - 360 : west + length);
    }
    const auto geometry = Geometry::from_wkt("MULTILINESTRING(" + wkt + ")");
    const auto box = geometry.bounds();
    SCOPED_TRACE(wkt);
    EXPECT_GE(box.west, -180);
    EXPECT_LE(box.west, 180);
    for (const auto& part : geometry.parts()) {
      const auto of = part.box();
      const double west = of.west + 360 * std::ceil((box.west - 1e-9 - of.west) / 360);
      EXPECT_LE(west + of.east - of.west, box.east + 1e-9);
    }
  }
}

TEST_F(CellsTest, APointIsSearchedInTheCellsNextToIt) {
  for (const double longitude : {-180.0, -135.0, -90.0, 0.0, 45.0, 180.0}) {
    const auto cells = query_cells(Geometry::from_wkt(fmt::format("POINT({} 0)", longitude)));
    for (const double latitude : {-1e-10, 0.0, 1e-10}) {
      for (const double east : {-1e-10, 0.0, 1e-10})
        EXPECT_TRUE(is_below(leaf_cell({longitude + east, latitude}), cells));
    }
  }
}

TEST_F(CellsTest, DistancesOfCellsAreNotMoreThanThoseOfTheirPositions) {
  for (int run = 0; run < 500; ++run) {
    const auto level = static_cast<std::size_t>(random(0, 12));
    // Also around the poles, and from one side of them to the other.
    const auto latitude = [&] { return run % 2 == 0 ? random(-90, 90) : 90 - random(0, 3); };
    const Position inside{random(-180, 180), latitude()}, from{random(-180, 180), latitude()};
    const Cell cell = ancestors(leaf_cell(inside))[level];
    SCOPED_TRACE(fmt::format("{} {} to {} around {} {}", from.longitude, from.latitude, length(cell),
                             inside.longitude, inside.latitude));
    const double least = least_distance(from, cell);
    EXPECT_EQ(least_distance(inside, cell), 0);
    EXPECT_EQ(least_distance(from, ancestors(leaf_cell(from))[level]), 0);
    // Positions of the cell, around the one that is known.
    const double size = length(cell);
    double nearest = distance(from, inside);
    for (int i = 0; i < 300; ++i) {
      const double away = size * std::pow(random(0, 1), 3), direction = random(0, 2 * std::numbers::pi);
      const double north = std::clamp(inside.latitude + away * std::sin(direction), -90.0, 90.0);
      const double narrow = std::max(1e-6, std::cos(north * std::numbers::pi / 180));
      const Position position{std::remainder(inside.longitude + away * std::cos(direction) / narrow, 360),
                              north};
      if (cells_below(cell).contains(leaf_cell(position)))
        nearest = std::min(nearest, distance(from, position));
    }
    EXPECT_LE(least, nearest);
    // Nearer by no more than its diagonal.
    EXPECT_GE(least, 0.98 * nearest - size * 160'000);
  }
}

TEST_F(CellsTest, APoleIsAtNoDistanceFromItself) {
  for (const double pole : {90.0, -90.0}) {
    for (const double longitude : {0.0, 121.0, -100.0, 180.0}) {
      for (const auto cell : ancestors(leaf_cell({longitude, pole})))
        EXPECT_EQ(least_distance({1, pole}, cell), 0);
    }
  }
}

}  // namespace
}  // namespace divan::index::geo
