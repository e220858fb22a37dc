// List functions: /{db}/_design/{name}/_list/{function}/{view}
// (https://docs.couchdb.org/en/stable/ddocs/ddocs.html#list-functions).
//
// If the rows fit into one page, the function is called with all of them, as an update function is called.
// Otherwise it holds a process while it reads its rows page by page.
#include <fmt/core.h>

#include "divan/api/function_call.h"
#include "divan/api/function_request.h"
#include "divan/api/list_output.h"
#include "divan/api/list_rows.h"
#include "divan/api/listing_pages.h"
#include "divan/api/view_queries.h"

namespace divan::api {
namespace {

// The real time of a list that reads its rows in pages, in multiples of the processor time of one step.
constexpr int kMaxTimesInvocation = 24;

// The function, and its second argument.
FunctionCall read_call(const Context& context, kv::Transaction& tx, Call& call) {
  const auto& path = call.path();
  const auto database = context.catalog.open(tx, path[0]);
  const auto design = read_design(tx, database, call);
  const std::string name[] = {"lists", path[4]};
  FunctionCall list = read_function(database, call, design.body, name);
  const bool has_json = call.method() == "POST" && call.has_body();
  list.arguments =
      function_request(context, tx, database, call, {}, has_json ? call.json_body() : std::string());
  return list;
}

// The listing that the path names.
Async<std::unique_ptr<PageSource>> open_listing(const Context& context, Call& call) {
  const auto& path = call.path();
  auto params = parse_query_params(call);
  if (path.back() == "_all_docs") {
    // As for _all_docs itself: it shows all users.
    if (path[0].starts_with('_')) call.require_admin();
    co_return all_document_pages(context, path[0], std::move(params));
  }
  ViewQueries queries(context, call, path[path.size() == 6 ? 2 : 5], path.back(), {std::move(params)}, false);
  co_await queries.wait();
  co_return queries.pages();
}

Async<RouteResult> short_list(const Context& context, Call& call, const FunctionCall& function) {
  const auto output =
      co_await call_function(context, call, function, FunctionUse::show, js::ResultKind::list);
  auto response = list_head(output);
  response.body = list_body(output);
  co_return response;
}

Async<RouteResult> paged_list(const Context& context, Call& call, const FunctionCall& function,
                              ListRows& rows) {
  ListOutput output(context, call, function.database);
  std::unique_ptr<PageSource> rest;
  const auto limit = kMaxTimesInvocation * context.js_pool.invocation();
  const auto run = [&] {
    const auto end = context.clock.now() + limit;
    const auto step = [&](std::string text, bool wants_rows) {
      check_connected(*call.exchange());
      if (context.clock.now() > end) {
        const auto seconds = std::chrono::duration<double>(limit).count();
        throw Error(500, "render_error", fmt::format("The list function has run for {} s.", seconds));
      }
      output.add(checked_result(std::move(text)));
      js::Pool::ListRows more;
      if (wants_rows) more.rows = rows.next();
      more.is_last = rows.is_last();
      return more;
    };
    auto last = context.js_pool.list(function.program, function.arguments, function.rows, step,
                                     FunctionThreads::limits());
    rest = output.finish(checked_result(std::move(last)));
  };
  co_await call.executor().run_on(context.function_threads, function.database, FunctionUse::paged_list, run);
  co_return co_await stream_pages(context, call, std::move(rest), output.take_head());
}

}  // namespace

Async<RouteResult> list(const Context& context, const CallPtr& call) {
  call->allow("GET,POST");
  const auto size = call->path().size();
  if (size != 6 && size != 7) throw Error(404, "list_error", "Invalid path.");
  FunctionCall function =
      co_await call->run(context.store, [&](kv::Transaction& tx) { return read_call(context, tx, *call); });
  ListRows rows(co_await open_listing(context, *call), checkpoint_of(*call));
  function.rows = rows.next();
  function.arguments = "[" + rows.head() + "," + function.arguments + "]";
  if (rows.is_last()) co_return co_await short_list(context, *call, function);
  const auto memory = context.function_threads.reserve(function.database, function.bytes());
  co_return co_await paged_list(context, *call, function, rows);
}

}  // namespace divan::api
