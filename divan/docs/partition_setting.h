// The setting of a partitioned database, which the catalog writes with its record (partition.h).
#pragma once

#include <string_view>

namespace divan::docs {

/// Its name; its value is `true`, and it is missing in other databases.
inline constexpr std::string_view kPartitioned = "partitioned";

}  // namespace divan::docs
