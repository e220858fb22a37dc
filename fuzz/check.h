// Shared by the fuzz targets.
#pragma once

#include <cstdlib>
#include <functional>
#include <string_view>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::fuzz {

inline void check(bool holds) {
  if (!holds) std::abort();
}

inline std::string_view text_of(const unsigned char* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Returns true if `call` succeeds; an error must be a valid client error with this status.
inline bool answers(int status, const std::function<void()>& call) {
  try {
    call();
    return true;
  } catch (const Error& error) {
    check(error.status() == status && !error.name().empty() && is_utf8(error.name()));
    return false;
  }
}

}  // namespace divan::fuzz
