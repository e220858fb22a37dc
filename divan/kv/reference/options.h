// Options of the reference engine.
#pragma once

#include "divan/kv/store.h"

namespace divan::kv::reference {

struct Options {
  Version version_step = 1;  // from one commit to the next
  std::size_t max_watches = 10'000;
};

}  // namespace divan::kv::reference
