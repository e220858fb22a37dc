// Show functions: /{db}/_design/{name}/_show/{function}/{document}
// (https://docs.couchdb.org/en/stable/ddocs/ddocs.html#show-functions).
#include <algorithm>

#include "divan/api/function_call.h"
#include "divan/api/function_request.h"
#include "divan/api/validations.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"
#include "divan/http/etag.h"

namespace divan::api {
namespace {

struct ShowCall {
  FunctionCall function{};
  std::string etag{};
};

ShowCall read_call(const Context& context, kv::Transaction& tx, Call& call) {
  const auto& path = call.path();
  const auto database = context.catalog.open(tx, path[0]);
  const auto design = read_design(tx, database, call);
  const std::string name[] = {"shows", path[4]};
  ShowCall show{.function = read_function(database, call, design.body, name)};
  const std::string id = joined_path(path, 5);
  std::string revision;
  const std::string document = id.empty() ? "null" : function_document(tx, database, id, &revision);
  show.function.arguments = "[" + document + "," + function_request(context, tx, database, call, id) + "]";
  // As in CouchDB: other things that the function may show, such as the number of documents, do not count.
  std::string state = design.revision().revision().to_string();
  const std::string user = user_context(path[0], call.user());
  for (const std::string_view part : {std::string_view(revision), call.header("Accept").value_or(""),
                                      call.request().query(), std::string_view(user)})
    (state += '\0') += part;
  show.etag = http::etag_of(state);
  return show;
}

// The function does not know what the response depends on.
void set_etag(http::Headers& headers, const std::string& etag) {
  std::erase_if(headers, [](const http::Header& header) {
    return http::equal_ignoring_case(header.name, "ETag") || http::equal_ignoring_case(header.name, "Vary");
  });
  headers.push_back({"ETag", etag});
  headers.push_back({"Vary", "Accept"});
}

}  // namespace

Async<RouteResult> show(const Context& context, const CallPtr& call) {
  if (call->path().size() < 5) throw Error(404, "show_error", "Invalid path.");
  const ShowCall show =
      co_await call->run(context.store, [&](kv::Transaction& tx) { return read_call(context, tx, *call); });
  if (auto unchanged = not_modified(*call, show.etag)) co_return *std::move(unchanged);
  const std::string result =
      co_await call_function(context, *call, show.function, FunctionUse::show, js::ResultKind::show);
  auto response = response_of(json::find(json::members_of(result), "response").value_or(""));
  set_etag(response.headers, show.etag);
  co_return response;
}

}  // namespace divan::api
