// Replications that a request asks for: _replicate
// (https://docs.couchdb.org/en/stable/api/server/common.html#replicate).
#include <fmt/core.h>

#include "divan/api/call.h"
#include "divan/api/errors.h"
#include "divan/api/request_waiter.h"
#include "divan/api/routes.h"
#include "divan/api/session_routes.h"
#include "divan/base/json.h"
#include "divan/jobs/wait.h"
#include "divan/replicator/replication_document.h"
#include "divan/replicator/replicator.h"

namespace divan::api {
namespace {

using replicator::kJobType;
using replicator::ReplicationJob;

// How often it is looked whether the replication of a document crashes.
constexpr std::chrono::milliseconds kPollInterval{1000};
// An attempt of POST /_replicate that fails is not repeated: the client is told.
constexpr std::string_view kOneAttempt = R"({"max_attempts":1})";

ReplicationJob parse_job(const Call& call, const std::string& body) {
  ReplicationJob job;
  job.replication = replicator::Replication::parse(body);
  job.json = body;
  job.replication.user = {call.user().name, roles_json(call.user())};
  return job;
}

// The id in the request, or that of the replication that it describes.
std::string id_to_cancel(const Context& context, const Call& call, const std::string& body) {
  for (const auto* name : {"replication_id", "id", "_local_id"}) {
    if (const auto id = json::member(body, name)) return json::string_value(*id).value_or("");
  }
  return parse_job(call, body).replication.id(context.server_uuid);
}

RouteResult cancel(const Context& context, const Call& call, const std::string& body) {
  const auto id = id_to_cancel(context, call, body);
  context.store.run([&](kv::Transaction& tx) {
    const auto job = context.queue.find(tx, kJobType, id);
    if (!job || jobs::has_ended(job->state)) throw not_found("missing");
    const auto request = ReplicationJob::parse_or_null(context.queue.data(tx, *job));
    context.queue.cancel(tx, kJobType, id);
    if (request && !request->document.empty()) {
      replicator::record_outcome(tx, context.catalog, *request,
                                 {.id = id, .reason = "The replication was cancelled by POST /_replicate."},
                                 context.clock.wall_ms());
    }
  });
  if (context.replicator != nullptr) context.replicator->interrupt(id);
  return json_response(200, fmt::format(R"({{"ok":true,"_local_id":{}}})", json::quoted(id)));
}

RouteResult response_of(const Context& context, const std::string& id) {
  return context.store.run([&](kv::Transaction& tx) -> RouteResult {
    const auto job = context.queue.find(tx, kJobType, id);
    if (!job) throw not_found("missing");
    if (job->state == jobs::State::finished)
      return json_response(200, context.queue.result(tx, *job).value_or("{}"));
    if (job->state == jobs::State::cancelled) throw Error(500, "cancelled", "The replication was cancelled.");
    throw Error(500, "replication_failed", job->last_error);
  });
}

// A document's replication is repeated after pauses that grow; the request that has found it is not to wait.
void throw_if_crashing(const Context& context, const std::string& id) {
  const auto job =
      context.store.run([&](kv::Transaction& tx) { return context.queue.find(tx, kJobType, id); });
  if (job && job->state == jobs::State::pending && job->failures > 0)
    throw Error(500, "replication_failed", job->last_error);
}

}  // namespace

Async<RouteResult> replicate(const Context& context, const CallPtr& call) {
  call->allow("POST");
  const std::string body = call->json_body();
  const auto cancelled = json::member(body, "cancel").value_or("false");
  if (cancelled != "true" && cancelled != "false") throw bad_request("`cancel` must be a boolean.");
  if (cancelled == "true") co_return cancel(context, *call, body);
  const auto job = parse_job(*call, body);
  const auto id = context.store.run([&](kv::Transaction& tx) {
    return replicator::request_replication(context.queue, tx, job, context.server_uuid,
                                           job.replication.continuous ? "" : jobs::job_limits(kOneAttempt));
  });
  if (job.replication.continuous)
    co_return json_response(202, fmt::format(R"({{"ok":true,"_local_id":{}}})", json::quoted(id)));
  const std::vector<std::pair<std::string, std::string>> awaited{{std::string(kJobType), id}};
  jobs::Wait wait(context.queue, context.store, awaited);
  RequestWaiter waiter(context, *call);
  waiter.wake_on_stop();
  while (wait.read(waiter.callback()) == 0) {
    throw_if_crashing(context, id);
    if (waiter.stopping() || waiter.exchange().half_closed())
      throw Error(503, "service_unavailable", "The server is being stopped.");
    co_await waiter.wait(kPollInterval);
  }
  co_return response_of(context, id);
}

}  // namespace divan::api
