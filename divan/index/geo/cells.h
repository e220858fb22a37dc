// The cells by which geometries are indexed. Those of level 0 are the faces of a cube around the Earth: four
// along the equator, and the poles'. Each cell has four children, down to less than a square centimetre. In
// the order of their names, the cells below a cell are next to each other. Why they
// are not those of a library: docs/decisions/022-cells.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "divan/index/geo/geometry.h"

namespace divan::index::geo {

/// The number of a cell: its face (0 around longitude 0, then eastwards; 4 north, 5 south), two bits for each
/// level, then a bit 1, then bits 0.
using Cell = std::uint64_t;

/// The name of a cell: 16 hexadecimal digits, which sort as the cells.
std::string cell_name(Cell cell);

/// The cells from `first` to `last`.
struct CellRange {
  Cell first = 0, last = 0;
  bool contains(Cell cell) const { return first <= cell && cell <= last; }
};

/// The smallest cell at a position.
Cell leaf_cell(const Position& position);
/// Indexes have cells of the first levels, and of every third one, so that queries need not look for all
/// cells around their own.
inline constexpr int kLevelStep = 3;

/// Cells that cover a geometry, in order: at most kMaxCells, or the only cell of a point.
std::vector<Cell> covering_cells(const Geometry& geometry);
inline constexpr int kMaxCells = 8;

/// Cells that cover a geometry for a query, at most kMaxCells: of a point, also those next to it. More cells
/// would cover it better, but it takes as long to look for the first row of a cell as to read several.
std::vector<Cell> query_cells(const Geometry& geometry);
/// These cells and those below them, as disjoint ranges in order.
std::vector<CellRange> cells_below(const std::vector<Cell>& cells);
/// The cells that intersect any of these cells, as disjoint ranges in order: the cells below them, and their
/// ancestors.
std::vector<CellRange> intersecting_cells(const std::vector<Cell>& cells);

/// The six cells of level 0.
std::vector<Cell> top_cells();
/// The cells above a cell that indexes may have, the smallest first.
std::vector<Cell> ancestors(Cell cell);
/// The four children of a cell; none, if it is of the last level.
std::vector<Cell> children(Cell cell);
/// Returns true if indexes may have a cell.
bool is_indexed(Cell cell);
/// The cells below a cell, and itself.
CellRange cells_below(Cell cell);
/// A lower bound of the distance to any point of a cell, in metres.
double least_distance(const Position& from, Cell cell);

}  // namespace divan::index::geo
