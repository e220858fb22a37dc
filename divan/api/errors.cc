#include "divan/api/errors.h"

namespace divan::api {
namespace {

bool is_too_large(kv::ErrorCode code) {
  return code == kv::ErrorCode::transaction_too_large || code == kv::ErrorCode::key_too_large ||
         code == kv::ErrorCode::value_too_large;
}

}  // namespace

Error http_error(const kv::Error& error) {
  const int status = is_too_large(error.code()) ? 413 : error.transient() ? 503 : 500;
  return {status, std::string(error.name()), error.reason()};
}

}  // namespace divan::api
