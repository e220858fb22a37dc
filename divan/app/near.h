// `divan near`: the documents of a spatial index that are nearest to a place.
#pragma once

#include <cstdint>
#include <string>

#include "divan/app/command_line.h"

namespace divan::app {

struct NearOptions {
  QueryOptions query;
  std::string database;
  std::string index;   // "DESIGN/INDEX"
  std::string at;      // "LATITUDE,LONGITUDE", in degrees
  std::string radius;  // in metres; empty: none
  std::uint64_t limit = 10;
};

/// Throws bad_request if `index` or `at` is malformed, and the server's errors.
void show_near(const NearOptions& options);

}  // namespace divan::app
