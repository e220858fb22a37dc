#include "divan/index/views/fan_out.h"

#include <xxhash.h>

#include <bit>

namespace divan::index::views {

int FanOut::level(std::string_view position) const {
  const auto zeros = static_cast<unsigned>(std::countr_zero(XXH64(position.data(), position.size(), 0)));
  return zeros < row_bits ? 0 : 1 + static_cast<int>((zeros - row_bits) / node_bits);
}

}  // namespace divan::index::views
