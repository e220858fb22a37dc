// Calls of functions of design documents that make responses: update, show, list and rewrite functions.
#pragma once

#include <string>
#include <string_view>

#include "divan/api/function_threads.h"
#include "divan/api/routes.h"
#include "divan/docs/reader.h"
#include "divan/js/pool.h"

namespace divan::api {

/// A function and its arguments, read from one version of the store.
struct FunctionCall {
  js::Program program{};
  std::string arguments{};    // a JSON array
  std::string rows = "[]";    // for ResultKind::list
  std::int64_t database = 0;  // its number

  /// The memory that it holds while it waits.
  std::size_t bytes() const { return arguments.size() + rows.size() + program.root.size(); }
};

/// The design document in the path of the request. Throws not_found (404) if it does not exist.
docs::StoredRevision read_design(kv::Transaction& tx, const docs::Database& database, const Call& call);
/// The function at `path` of that design document, which has this body. Throws as
/// functions::design_function().
FunctionCall read_function(const docs::Database& database, const Call& call, std::string_view design_body,
                           std::span<const std::string> path);

/// Calls the function, and returns its result, one of the objects of ResultKind. Throws as checked_result()
/// does, and service_unavailable (503).
Async<std::string> call_function(const Context& context, Call& call, const FunctionCall& function,
                                 FunctionUse use, js::ResultKind kind,
                                 std::string_view error_name = "render_error");

/// The result of a function, one of the objects of ResultKind. Throws the error that the function threw, or
/// one with the status 500 and the name `error_name` if it failed.
std::string checked_result(js::Outcome outcome, std::string_view error_name = "render_error");

/// The error for an invalid value in a function's response.
Error response_error(std::string_view name, std::string_view value);

/// The response that a function describes in JSON: {code, headers, body, base64, json}. `status` is the
/// default of `code`. Throws response_error().
http::Response response_of(std::string_view json, int status = 200);

}  // namespace divan::api
