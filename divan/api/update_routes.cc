// Update functions: /{db}/_design/{name}/_update/{function}/{document}
// (https://docs.couchdb.org/en/stable/ddocs/ddocs.html#update-functions).
#include <fmt/core.h>

#include <algorithm>

#include "divan/api/function_request.h"
#include "divan/api/function_threads.h"
#include "divan/api/routes.h"
#include "divan/api/user_documents.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"
#include "divan/docs/reader.h"
#include "divan/functions/design_function.h"
#include "divan/http/url.h"

namespace divan::api {
namespace {

Error render_error(std::string reason) { return {500, "render_error", std::move(reason)}; }
Error response_error(std::string_view name, std::string_view value) {
  return {500, "external_response_error",
          fmt::format("Invalid data from the function: `{}` is {}", name, value)};
}

// A call of the function with the document of this id, which is empty without one.
struct UpdateCall {
  js::Program program{};
  std::string document_id{};
  std::string document{};  // JSON; "null" without one
  std::string request{};   // JSON
  std::int64_t database = 0;
};

UpdateCall read_call(const Context& context, kv::Transaction& tx, Call& call) {
  const auto& path = call.path();
  const auto database = context.catalog.open(tx, path[0]);
  const std::string design_id = std::string(docs::kDesignPrefix) + path[2];
  const auto design = docs::find_document(tx, database, design_id, {});
  const std::string function[] = {"updates", path[4]};
  UpdateCall update;
  update.database = database.number();
  update.program =
      functions::design_function(functions::owner_of(database, design_id), design.body, function);
  for (std::size_t i = 5; i < path.size(); ++i) update.document_id += (i > 5 ? "/" : "") + path[i];
  update.document = "null";
  if (!update.document_id.empty()) {
    const auto tree = docs::read_tree(tx, database, update.document_id, kv::Isolation::snapshot);
    if (!tree.empty() && !tree.front().deleted) {
      update.document.clear();
      docs::append_document(update.document, update.document_id, tree.front(),
                            docs::read_body(tx, database, tree.front()), tree,
                            {.revs = true, .conflicts = true});
    }
  }
  update.request = update_request(context, tx, database, call, update.document_id);
  return update;
}

// What the function returns: [document, response].
std::string run_function(js::Pool& pool, const UpdateCall& update) {
  const std::string arguments = "[" + update.document + "," + update.request + "]";
  const js::Arguments calls[] = {{arguments, "[]"}};
  const auto outcomes = pool.apply(update.program, js::ResultKind::value, calls, FunctionThreads::limits());
  if (const auto* failure = std::get_if<js::Failure>(&outcomes.front()))
    throw render_error("function raised error: " + failure->message);
  return std::get<std::string>(outcomes.front());
}

struct UpdateResult {
  std::string document = "null";
  std::string response{};
};

UpdateResult parse_result(const std::string& json) {
  UpdateResult result;
  std::size_t index = 0;
  const bool is_array = json::for_each_element(json, [&](std::string_view element) {
    if (index == 0) result.document = element;
    if (index == 1) result.response = element;
    return ++index < 2;
  });
  if (!is_array || (!result.response.starts_with('{') && !result.response.starts_with('"')))
    throw render_error("undefined response from update function");
  return result;
}

// A token of RFC 9110.
bool is_field_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    const bool is_alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

void add_headers(std::string_view object, http::Headers& headers) {
  const bool is_object =
      json::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
        const std::string name = json::unescape(raw_name);
        const std::string text = json::string_value(value).value_or(std::string(value));
        if (!is_field_name(name)) throw response_error("headers", object);
        headers.push_back({name, text});
        return true;
      });
  if (!is_object) throw response_error("headers", object);
}

// The response that the function describes: a text, or {code, headers, body, base64, json}.
http::Response response_of(std::string_view json, int status) {
  http::Response response;
  response.status = status;
  std::string type = "application/json";
  const auto use = [&](const std::string& name, std::string_view value) {
    if (name == "code") {
      const auto code = json::int_value(value);
      if (!code || *code < 200 || *code > 599) throw response_error(name, value);
      response.status = static_cast<int>(*code);
    } else if (name == "json") {
      response.body = std::string(value) + "\n";
    } else if (name == "body" || name == "base64") {
      auto text = json::string_value(value);
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
  };
  if (json.starts_with('"')) {
    use("body", json);
  } else {
    for (const auto& [name, value] : json::members_of(json)) use(name, value);
  }
  const bool has_type = std::ranges::any_of(response.headers, [](const http::Header& header) {
    return http::equal_ignoring_case(header.name, "Content-Type");
  });
  if (!has_type) response.headers.push_back({"Content-Type", type});
  // Scripts in the response must not act for the user.
  response.headers.push_back({"Content-Security-Policy", "sandbox"});
  return response;
}

}  // namespace

Async<RouteResult> update(const Context& context, const CallPtr& call) {
  call->allow("POST,PUT");
  const UpdateCall update =
      co_await call->run(context.store, [&](kv::Transaction& tx) { return read_call(context, tx, *call); });
  std::string returned;
  const auto run = [&] { returned = run_function(context.js_pool, update); };
  {
    const auto memory = context.function_threads.reserve(
        update.database, update.document.size() + update.request.size() + update.program.root.size());
    co_await call->executor().run_on(context.function_threads, update.database, FunctionUse::update, run);
  }
  const UpdateResult result = parse_result(returned);
  if (!result.document.starts_with('{')) co_return response_of(result.response, 200);
  std::vector<docs::IncomingDocument> documents;
  documents.push_back(docs::parse_document(json::compact(result.document)));
  docs::check_document_id(documents.front().id);
  if (documents.front().id.starts_with(docs::kLocalPrefix))
    throw bad_request("Update functions do not write local documents.");
  prepare_document(context, call->user(), call->path()[0], documents.front());
  auto response = response_of(result.response, 201);  // before anything is written
  const auto written = co_await bulk_edit(context, *call, documents);
  if (written.front().error) throw Error(*written.front().error);
  response.headers.push_back({"X-Couch-Update-NewRev", written.front().revision.to_string()});
  response.headers.push_back({"X-Couch-Id", http::percent_encode(written.front().id)});
  co_return response;
}

}  // namespace divan::api
