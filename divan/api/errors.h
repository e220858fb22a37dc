// Errors of the store as HTTP errors.
#pragma once

#include "divan/base/error.h"
#include "divan/kv/error.h"

namespace divan::api {

/// An error with the same name and reason, and a status: 413 if the transaction, a key or a value is too
/// large, 503 if a later request may succeed, 500 otherwise.
Error http_error(const kv::Error& error);

}  // namespace divan::api
