// Update functions: /{db}/_design/{name}/_update/{function}/{document}
// (https://docs.couchdb.org/en/stable/ddocs/ddocs.html#update-functions).
#include "divan/api/function_call.h"
#include "divan/api/function_request.h"
#include "divan/api/routes.h"
#include "divan/api/user_documents.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"
#include "divan/http/url.h"

namespace divan::api {
namespace {

FunctionCall read_call(const Context& context, kv::Transaction& tx, Call& call) {
  const auto& path = call.path();
  const auto database = context.catalog.open(tx, path[0]);
  const auto design = read_design(tx, database, call);
  const std::string name[] = {"updates", path[4]};
  FunctionCall update = read_function(database, call, design.body, name);
  const std::string id = joined_path(path, 5);
  const std::string document = id.empty() ? "null" : function_document(tx, database, id);
  update.arguments = "[" + document + "," + function_request(context, tx, database, call, id) + "]";
  return update;
}

struct UpdateResult {
  std::string document = "null";
  std::string response{};  // JSON: an object
};

// What the function returns: [document, response].
UpdateResult parse_result(const std::string& json) {
  UpdateResult result;
  std::size_t index = 0;
  json::for_each_element(json::find(json::members_of(json), "value").value_or(""),
                         [&](std::string_view element) {
                           if (index == 0) result.document = element;
                           if (index == 1) result.response = element;
                           return ++index < 2;
                         });
  if (result.response.starts_with('"')) result.response = "{\"body\":" + result.response + "}";
  if (!result.response.starts_with('{'))
    throw Error(500, "render_error", "undefined response from update function");
  return result;
}

}  // namespace

Async<RouteResult> update(const Context& context, const CallPtr& call) {
  call->allow("POST,PUT");
  const FunctionCall function =
      co_await call->run(context.store, [&](kv::Transaction& tx) { return read_call(context, tx, *call); });
  const UpdateResult result = parse_result(
      co_await call_function(context, *call, function, FunctionUse::update, js::ResultKind::call));
  if (!result.document.starts_with('{')) co_return response_of(result.response);
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
