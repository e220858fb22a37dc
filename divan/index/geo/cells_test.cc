#include "divan/index/geo/cells.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
  /// The length of a cell's sides, in degrees.
  static double length(Cell cell) {
    const auto [first, last] = cells_below(cell);
    return 180 * std::sqrt(static_cast<double>((last - first) / 2 + 1)) / (1 << 30);
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
    cells.push_back(ancestors(leaf_cell({random(-180, 180), random(-90, 90)}))[i % 10]);
  for (const auto cell : cells) {
    const auto below = children(cell);
    ASSERT_EQ(below.size(), 4);
    EXPECT_EQ(cells_below(below.front()).first, cells_below(cell).first);
    EXPECT_EQ(cells_below(below.back()).last, cells_below(cell).last);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(length(below[i]), length(cell) / 2);
      if (i > 0) EXPECT_EQ(cells_below(below[i]).first, cells_below(below[i - 1]).last + 2);
      auto above = ancestors(below[i]);
      EXPECT_EQ(std::ranges::find(above, cell) != above.end(), is_indexed(cell));
    }
  }
  EXPECT_EQ(children(leaf_cell({0, 0})), std::vector<Cell>());
  EXPECT_EQ(length(leaf_cell({0, 0})), 180.0 / (1 << 30));
  EXPECT_EQ(length(ancestors(leaf_cell({0, 0})).back()), 180);
  EXPECT_LT(cell_name(leaf_cell({-0.5, 89})), cell_name(leaf_cell({0.5, -89})));
  EXPECT_EQ(leaf_cell({180, 5}), leaf_cell({-180, 5}));
  EXPECT_EQ(cell_name(leaf_cell({-180, -90})), "0000000000000001");
  EXPECT_EQ(cell_name(leaf_cell({179.99999999, 90})), "3fffffffffffffff");
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
    // Cells that are as long as a box, or up to twice as long, can cover it in four.
    const double size = std::max({box.east - box.west, box.north - box.south, length(leaf_cell({0, 0}))});
    for (const auto cell : searched) EXPECT_LE(length(cell), std::min(180.0, 2 * size + 1e-8));
    for (const auto cell : indexed) EXPECT_LE(length(cell), std::min(180.0, 8 * (2 * size + 1e-8)));
  }
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

TEST_F(CellsTest, APointIsSearchedInTheCellsNextToIt) {
  for (const double longitude : {-180.0, -90.0, 0.0, 45.0, 180.0}) {
    const auto cells = query_cells(Geometry::from_wkt(fmt::format("POINT({} 0)", longitude)));
    for (const double latitude : {-1e-10, 0.0, 1e-10}) {
      for (const double east : {-1e-10, 0.0, 1e-10})
        EXPECT_TRUE(is_below(leaf_cell({longitude + east, latitude}), cells));
    }
  }
}

TEST_F(CellsTest, DistancesOfCellsAreNotMoreThanThoseOfTheirPositions) {
  for (int run = 0; run < 500; ++run) {
    const auto level = static_cast<std::size_t>(random(0, 10));
    // Also around the poles, and from one side of them to the other.
    const auto latitude = [&] { return run % 2 == 0 ? random(-90, 90) : 90 - random(0, 3); };
    const Position inside{random(-180, 180), latitude()}, from{random(-180, 180), latitude()};
    const Cell cell = ancestors(leaf_cell(inside))[level];
    SCOPED_TRACE(fmt::format("{} {} to {} around {} {}", from.longitude, from.latitude, length(cell),
                             inside.longitude, inside.latitude));
    const double least = least_distance(from, cell);
    EXPECT_EQ(least_distance(inside, cell), 0);
    // Positions of all of its sides, up to `apart` metres from each other.
    const double size = length(cell);
    const double west = std::floor((inside.longitude + 180) / size) * size - 180;
    const double south = std::floor((inside.latitude + 90) / size) * size - 90;
    double nearest = distance(from, inside);
    for (int i = 0; i <= 64; ++i) {
      const double share = i / 64.0 * size;
      for (const auto& position : {Position{west + share, south}, Position{west + share, south + size},
                                   Position{west, south + share}, Position{west + size, south + share}})
        nearest = std::min(nearest, distance(from, position));
    }
    const bool is_inside =
        leaf_cell(from) >= cells_below(cell).first && leaf_cell(from) <= cells_below(cell).last;
    if (is_inside) nearest = 0;
    EXPECT_LE(least, nearest);
    const double apart = size / 64 * 111'700;
    EXPECT_GE(least, 0.98 * nearest - apart / 2);
  }
}

}  // namespace
}  // namespace divan::index::geo
