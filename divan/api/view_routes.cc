// Views, and information about their indexes.
#include <fmt/core.h>

#include "divan/api/index_waits.h"
#include "divan/api/routes.h"
#include "divan/api/view_queries.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/purge.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/index/builds.h"
#include "divan/index/left_out.h"

namespace divan::api {
Async<RouteResult> view(const Context& context, const CallPtr& call) {
  const bool several = is_multi_query(*call, 5);
  call->allow(several ? "POST" : "GET,POST");
  auto params = several ? parse_queries(*call) : std::vector{parse_query_params(*call)};
  ViewQueries queries(context, *call, call->path()[2], call->path()[4], std::move(params), several);
  co_await queries.wait();
  if (auto unchanged = not_modified(*call, queries.etag())) co_return *std::move(unchanged);
  co_return co_await stream_pages(context, *call, queries.pages(), queries.etag());
}

RouteResult design_info(const Context& context, const CallPtr& call) {
  call->allow("GET");
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto found =
        find_views(context, tx, call->path()[0], std::string(docs::kDesignPrefix) + call->path()[2]);
    if (!found.index) throw not_found("missing");
    const index::IndexKeys keys(found.database, found.index->signature());
    const auto sequence = index::read_sequence(tx, keys, kv::Isolation::snapshot);
    const std::string build_id = index::build_id(found.database, found.index->signature());
    const auto job = context.queue.find(tx, found.index->kind(), build_id);
    const bool running = job && job->state == jobs::State::running;
    json::Writer writer(out);
    writer.begin_object().key("name").string(call->path()[2]).key("view_index").begin_object();
    writer.key("signature")
        .string(to_hex(found.index->signature()))
        .key("language")
        .string(found.index->mapper().language());
    writer.key("updater_running").boolean(running);
    writer.key("waiting_clients").number(static_cast<std::int64_t>(context.index_waits.count(build_id)));
    writer.key("update_seq").string(docs::to_sequence(sequence));
    const std::int64_t pending = docs::count_index_changes(tx, found.database, sequence, kMaxCountedChanges);
    writer.key("updates_pending").begin_object();
    for (const char* of : {"minimum", "preferred", "total"}) writer.key(of).number(pending);
    writer.end_object();
    writer.key("collator_versions").begin_array().string(collation::version()).end_array();
    const std::int64_t bytes = context.store.estimate_bytes(keys.all());
    writer.key("sizes").begin_object();
    for (const char* kind : {"file", "external", "active"}) writer.key(kind).number(bytes);
    writer.end_object();
    // Constants: the store compacts itself, an index has purges in its `update_seq`, and commits are durable
    // before the response.
    writer.key("compact_running")
        .boolean(false)
        .key("waiting_commit")
        .boolean(false)
        .key("purge_seq")
        .number(0);
    writer.key("left_out");
    index::read_left_out(tx, keys).write(writer);
    if (job) {
      writer.key("build").begin_object().key("state").string(jobs::state_name(job->state));
      if (!job->progress.empty()) writer.key("progress").raw(job->progress);
      if (!job->last_error.empty()) writer.key("last_error").string(job->last_error);
      writer.end_object();
    }
    writer.end_object().end_object();
  });
  return json_response(200, std::move(out));
}

}  // namespace divan::api
