// Errors of the store as HTTP answers.
#pragma once

#include "divan/base/error.h"
#include "divan/kv/error.h"

namespace divan::api {

/// The same name and reason with a status: 413 for what is too large, 503 if a later request may succeed, 500
/// otherwise.
Error http_error(const kv::Error& error);

}  // namespace divan::api
