// Replications: _replicate, _scheduler
// (https://docs.couchdb.org/en/stable/api/server/common.html#replicate).
#include <absl/time/time.h>
#include <fmt/core.h>

#include "divan/api/call.h"
#include "divan/api/errors.h"
#include "divan/api/request_waiter.h"
#include "divan/api/routes.h"
#include "divan/api/session_routes.h"
#include "divan/api/unsupported.h"
#include "divan/base/json.h"
#include "divan/jobs/listing.h"
#include "divan/jobs/wait.h"
#include "divan/replicator/replicator.h"

namespace divan::api {
namespace {

using replicator::kJobType;
using replicator::ReplicationJob;

// Poll interval for jobs that cannot be watched.
constexpr std::chrono::milliseconds kPollInterval{1000};
// The most replications in a response of `_scheduler`.
constexpr std::int64_t kMaxShown = 1'000;
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
    context.queue.cancel(tx, kJobType, id);
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

std::string_view scheduler_state(const jobs::Job& job) {
  switch (job.state) {
    case jobs::State::running: return "running";
    case jobs::State::pending: return job.failures > 0 ? "crashing" : "pending";
    case jobs::State::finished: return "completed";
    default: return "failed";
  }
}

void append_job(json::Writer& writer, const Context& context, kv::Transaction& tx, const jobs::Job& job) {
  std::optional<ReplicationJob> request;
  try {
    request = ReplicationJob::parse(context.queue.data(tx, job));
  } catch (const Error&) { return; }  // a client has added this job, with other data
  const auto text_or_null = [&](std::string_view key, const std::string& text) {
    writer.key(key);
    text.empty() ? writer.null() : writer.string(text);
  };
  writer.begin_object();
  text_or_null("database", request->database);
  writer.key("id").string(job.id);
  text_or_null("pid", job.state == jobs::State::running ? job.id : "");
  writer.key("source").string(request->replication.source.shown());
  writer.key("target").string(request->replication.target.shown());
  text_or_null("user", request->replication.user.name);
  text_or_null("doc_id", request->document);
  text_or_null("node", job.worker_id);
  writer.key("state").string(scheduler_state(job)).key("error_count").number(job.failures);
  writer.key("start_time")
      .string(
          absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(job.added_at), absl::UTCTimeZone()));
  writer.key("info").raw(job.progress.empty() ? "null" : job.progress);
  text_or_null("last_error", job.last_error);
  writer.end_object();
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
    if (waiter.stopping() || waiter.exchange().half_closed())
      throw Error(503, "service_unavailable", "The server is being stopped.");
    co_await waiter.wait(wait.must_poll() ? std::optional(kPollInterval) : std::nullopt);
  }
  co_return response_of(context, id);
}

RouteResult scheduler(const Context& context, const CallPtr& call) {
  call->allow("GET");
  const auto& path = call->path();
  if (path.size() > 1 && path[1] == "docs")
    throw_not_implemented("Replications by documents are not supported yet.");
  if (path.size() < 2 || path.size() > 3 || path[1] != "jobs") throw not_found("missing");
  const bool is_one = path.size() == 3;
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    json::Writer writer(out);
    if (is_one) {
      const auto job = context.queue.find(tx, kJobType, path[2]);
      if (!job || jobs::has_ended(job->state)) throw not_found("missing");
      return append_job(writer, context, tx, *job);
    }
    std::vector<jobs::Job> shown;
    for (const auto state : {jobs::State::running, jobs::State::pending}) {
      auto listed = jobs::list_jobs(context.queue, tx, kJobType, {.state = state, .limit = kMaxShown});
      std::ranges::move(listed.jobs, std::back_inserter(shown));
    }
    writer.begin_object().key("total_rows").number(static_cast<std::int64_t>(shown.size()));
    writer.key("offset").number(0).key("jobs").begin_array();
    for (const auto& job : shown) append_job(writer, context, tx, job);
    writer.end_array().end_object();
  });
  return json_response(200, std::move(out));
}

}  // namespace divan::api
