// For tests of errors.
#pragma once

#include <functional>
#include <string>

#include "divan/base/error.h"

namespace divan {

/// Returns what() of the Error that fn() throws; "no error" if it returns.
inline std::string error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

}  // namespace divan
