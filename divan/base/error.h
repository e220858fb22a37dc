// Errors that end a whole request, transaction or job.
//
// Absence is not an Error: functions return std::optional. Users see an Error in CouchDB's form, {"error":
// name, "reason": reason}, with an HTTP status
// (https://docs.couchdb.org/en/stable/json-structure.html#couchdb-error-status). The store throws kv::Error,
// which is not an Error, so that for example a handler of invalid documents does not catch a conflict.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace divan {

/// An error: CouchDB's name for it, a reason as text, and the HTTP status. A value type.
class Error : public std::exception {
 public:
  /// `status` is an HTTP status, 400 to 599.
  Error(int status, std::string name, std::string reason)
      : status_(status), name_(std::move(name)), reason_(std::move(reason)), what_(name_ + ": " + reason_) {}

  int status() const { return status_; }
  const std::string& name() const { return name_; }
  const std::string& reason() const { return reason_; }
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  int status_;
  std::string name_;
  std::string reason_;
  std::string what_;
};

inline Error bad_request(std::string reason) { return {400, "bad_request", std::move(reason)}; }
inline Error unauthorized(std::string reason) { return {401, "unauthorized", std::move(reason)}; }
inline Error forbidden(std::string reason) { return {403, "forbidden", std::move(reason)}; }
inline Error not_found(std::string reason = "missing") { return {404, "not_found", std::move(reason)}; }
inline Error conflict(std::string reason = "Document update conflict.") {
  return {409, "conflict", std::move(reason)};
}
inline Error internal_error(std::string reason) { return {500, "internal_server_error", std::move(reason)}; }

}  // namespace divan
