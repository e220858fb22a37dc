// What tests of errors share.
#pragma once

#include <functional>
#include <string>

#include "divan/base/error.h"

namespace divan {

/// What fn() throws, as text; "no error" if it throws nothing.
inline std::string error_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) { return error.what(); }
  return "no error";
}

}  // namespace divan
