#include "divan/api/function_call.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"
#include "divan/functions/design_function.h"

namespace divan::api {
namespace {

// The most bytes of a reason, or of an invalid value, in an error.
constexpr std::size_t kMaxReason = 1000;

// The error of ["error", name, reason], with the status that CouchDB has for the name.
Error thrown_error(std::string_view name_and_reason) {
  static const std::map<std::string, int, std::less<>> statuses = {
      {"bad_request", 400}, {"query_parse_error", 400},  {"unauthorized", 401},      {"forbidden", 403},
      {"not_found", 404},   {"method_not_allowed", 405}, {"not_acceptable", 406},    {"conflict", 409},
      {"gone", 410},        {"bad_ctype", 415},          {"expectation_failed", 417}};
  std::vector<std::string> texts;
  json::for_each_element(name_and_reason, [&](std::string_view text) {
    texts.emplace_back(utf8_prefix(json::string_value(text).value_or(""), kMaxReason));
    return true;
  });
  texts.resize(2);
  if (texts[0].empty()) texts[0] = "unnamed_error";
  const auto status = statuses.find(texts[0]);
  return {status == statuses.end() ? 500 : status->second, texts[0], texts[1]};
}

std::string design_id(const Call& call) { return std::string(docs::kDesignPrefix) + call.path()[2]; }

// A token of RFC 9110.
bool is_field_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    const bool is_alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

// Line breaks would begin other fields.
bool is_field_value(std::string_view value) {
  return std::ranges::none_of(value,
                              [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; });
}

// Fields that depend on how the server sends the body.
bool is_of_server(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"Connection", "Content-Length",    "Keep-Alive",
                                                      "Trailer",    "Transfer-Encoding", "Upgrade"};
  return std::ranges::any_of(kNames, [&](auto known) { return http::equal_ignoring_case(name, known); });
}

void add_headers(std::string_view object, http::Headers& headers) {
  const bool is_object =
      json::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
        const std::string name = json::unescape(raw_name);
        const std::string text = json::string_value(value).value_or(std::string(value));
        if (!is_field_name(name) || !is_field_value(text)) throw response_error("headers", object);
        if (!is_of_server(name)) headers.push_back({name, text});
        return true;
      });
  if (!is_object) throw response_error("headers", object);
}

}  // namespace

Error response_error(std::string_view name, std::string_view value) {
  return {500, "external_response_error",
          fmt::format("Invalid data from the function: `{}` is {}", utf8_prefix(name, kMaxReason),
                      utf8_prefix(value, kMaxReason))};
}

docs::StoredRevision read_design(kv::Transaction& tx, const docs::Database& database, const Call& call) {
  return docs::find_document(tx, database, design_id(call), {});
}

FunctionCall read_function(const docs::Database& database, const Call& call, std::string_view design_body,
                           std::span<const std::string> path) {
  const auto owner = functions::owner_of(database, design_id(call));
  return {.program = functions::design_function(owner, design_body, path), .database = database.number()};
}

std::string checked_result(js::Outcome outcome, std::string_view error_name) {
  if (const auto* failure = std::get_if<js::Failure>(&outcome))
    throw Error(500, std::string(error_name), "function raised error: " + failure->message);
  auto result = std::get<std::string>(std::move(outcome));
  if (!json::is_compact(result)) throw internal_error("A JavaScript process has sent invalid JSON.");
  if (const auto error = json::find(json::members_of(result), "error")) throw thrown_error(*error);
  return result;
}

Async<std::string> call_function(const Context& context, Call& call, const FunctionCall& function,
                                 FunctionUse use, js::ResultKind kind, std::string_view error_name) {
  std::string result;
  const js::Arguments calls[] = {{function.arguments, function.rows}};
  const auto run = [&] {
    auto outcomes = context.js_pool.apply(function.program, kind, calls, FunctionThreads::limits());
    result = checked_result(std::move(outcomes.front()), error_name);
  };
  const auto memory = context.function_threads.reserve(function.database, function.bytes());
  co_await call.executor().run_on(context.function_threads, function.database, use, run);
  co_return result;
}

http::Response response_of(std::string_view json, int status) {
  http::Response response;
  response.status = status;
  std::string type = "application/json";
  const bool is_object = json::for_each_member(json, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    if (name == "code") {
      const auto code = json::int_value(value);
      if (!code || *code < 200 || *code > 599) throw response_error(name, value);
      response.status = static_cast<int>(*code);
    } else if (name == "json") {
      response.body = std::string(value) + "\n";
      type = "application/json";
    } else if (name == "body" || name == "base64") {
      const auto text = json::string_value(value);
      if (!text) throw response_error(name, value);
      type = name == "body" ? "text/html; charset=utf-8" : "application/binary";
      const auto bytes = name == "body" ? text : from_base64(*text);
      if (!bytes) throw response_error(name, "not base64");
      response.body = *bytes;
    } else if (name == "headers") {
      add_headers(value, response.headers);
    } else if (name != "stop") {
      throw response_error(name, value);
    }
    return true;
  });
  if (!is_object) throw response_error("response", json);
  const bool has_type = std::ranges::any_of(response.headers, [](const http::Header& header) {
    return http::equal_ignoring_case(header.name, "Content-Type");
  });
  if (!has_type) response.headers.push_back({"Content-Type", type});
  // Scripts in the response must not act for the user.
  response.headers.push_back({"Content-Security-Policy", "sandbox"});
  return response;
}

}  // namespace divan::api
