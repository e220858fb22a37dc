// rtree POINTS QUERIES: points in Boost.Geometry's R-tree, in memory, as a peer of bench/geo.mjs.
//
// POINTS has lines with a longitude and a latitude; QUERIES lines with "box" and west, south, east and north,
// or "near" and a longitude and a latitude. Prints a line for each query: microseconds and the number of
// results, 200 or 10 at most.
#include <boost/geometry.hpp>
#include <boost/geometry/index/rtree.hpp>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

namespace bg = boost::geometry;
namespace bgi = boost::geometry::index;
using Point = bg::model::point<double, 2, bg::cs::spherical_equatorial<bg::degree>>;
using Box = bg::model::box<Point>;

int main(int, char** arguments) {
  std::vector<std::pair<Point, unsigned>> points;
  std::ifstream file(arguments[1]);
  for (double x = 0, y = 0; file >> x >> y;) points.emplace_back(Point(x, y), points.size());
  const bgi::rtree<std::pair<Point, unsigned>, bgi::rstar<16>> tree(points);
  std::ifstream queries(arguments[2]);
  for (std::string line; std::getline(queries, line);) {
    std::istringstream words(line);
    std::string kind;
    double west = 0, south = 0, east = 0, north = 0;
    words >> kind >> west >> south >> east >> north;
    std::vector<std::pair<Point, unsigned>> found;
    const auto began = std::chrono::steady_clock::now();
    if (kind == "box") {
      const auto inside = bgi::intersects(Box(Point(west, south), Point(east, north)));
      for (auto at = tree.qbegin(inside); at != tree.qend() && found.size() < 200; ++at) found.push_back(*at);
    } else {
      tree.query(bgi::nearest(Point(west, south), 10), std::back_inserter(found));
    }
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - began;
    std::cout << time.count() << ' ' << found.size() << '\n';
  }
}
