// The job queue over HTTP. docs/jobs.md
#include <fmt/core.h>

#include <algorithm>
#include <unordered_set>

#include "divan/api/body.h"
#include "divan/api/job_feed.h"
#include "divan/api/job_handover.h"
#include "divan/api/job_options.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/deliver/settings.h"
#include "divan/jobs/acceptor.h"
#include "divan/jobs/damaged.h"
#include "divan/jobs/history.h"
#include "divan/jobs/rows.h"
#include "divan/replicator/jobs.h"

namespace divan::api {
namespace {

using jobs::Queue;

// Bytes that a transaction writes at most for a job without data: keys, header and counters. On a cluster
// they depend on [fdb] name, which is part of each key.
constexpr std::size_t kBytesOfSmallJob = 1600;

std::string counts_json(const Context& context, kv::Transaction& tx, std::string_view type) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  for (const auto& [state, count] : context.queue.counts(tx, type))
    writer.key(jobs::state_name(state)).number(count);
  writer.end_object();
  return out;
}

std::string type_json(const Context& context, const User& user, kv::Transaction& tx, std::string_view type) {
  auto settings = context.queue.type(tx, type);
  if (!settings.deliver.empty()) {
    settings.deliver =
        user.admin ? deliver::shown_settings(settings.deliver) : deliver::shown_host(settings.deliver);
  }
  return fmt::format(R"({{"type":{},"own":{},"settings":{},"counts":{}}})", json::quoted(type),
                     context.queue.is_own_type(type), jobs::settings_json(settings),
                     counts_json(context, tx, type));
}

// The settings `before` of a type, changed by a request.
jobs::TypeSettings changed_settings(const Context& context, const User& user, std::string_view type,
                                    const jobs::TypeSettings& before, std::string_view body) {
  auto settings = jobs::parse_settings(body, before);
  if (!json::parse_object(body).contains("deliver")) return settings;
  if (!user.admin) throw forbidden("Only server admins may set `deliver`.");
  if (settings.deliver.empty()) return settings;
  if (context.queue.is_own_type(type))
    throw bad_request(fmt::format("Jobs of type `{}` are the server's own: they cannot be delivered.", type));
  settings.deliver = deliver::change_settings(before.deliver, settings.deliver);
  return settings;
}

std::string added_json(const Queue::Added& added) {
  return fmt::format(R"({{"ok":true,"id":{},"created":{}}})", json::quoted(added.id), added.created);
}

// GET /_jobs
RouteResult list_types(const Context& context, Call& call) {
  call.allow("GET");
  const auto out = context.store.run([&](kv::Transaction& tx) {
    std::string types;
    for (const auto& type : context.queue.types(tx)) {
      if (!may_use_type(context, call.user(), type)) continue;
      try {
        types += (types.empty() ? "" : ",\n") + type_json(context, call.user(), tx, type);
      } catch (const Error& error) {
        context.queue.report_damage(jobs::type_key(type),
                                    fmt::format("Job type {} is left out: {}", type, error.reason()));
      }
    }
    return types;
  });
  return json_response(200, "{\"types\":[" + out + "]}");
}

// /_jobs/{type}, except POST
RouteResult job_type(const Context& context, Call& call, const std::string& type) {
  call.allow("GET,PUT,POST,DELETE");
  if (call.method() == "GET") {
    return json_response(200, context.store.run([&](kv::Transaction& tx) {
      return type_json(context, call.user(), tx, type);
    }));
  }
  if (call.method() == "PUT") {
    const std::string body = call.has_body() ? call.json_body() : "{}";
    context.store.run([&](kv::Transaction& tx) {
      const auto before = context.queue.find_type(tx, type);
      context.queue.set_type(
          tx, type,
          changed_settings(context, call.user(), type, before.value_or(jobs::TypeSettings()), body));
    });
    return ok_response(201);
  }
  const bool force = call.flag("force");
  context.store.run([&](kv::Transaction& tx) { context.queue.remove_type(tx, type, force); });
  return ok_response();
}

// POST /_jobs/{type}, PUT /_jobs/{type}/{id}
Async<RouteResult> add_job(const Context& context, Call& call, const std::string& type,
                           const std::optional<std::string>& id) {
  const Body body(call.has_body() ? call.json_body() : "{}", kAddMembers);
  const auto options = add_options(body);
  const std::function<Queue::Added(kv::Transaction&)> add = [&](kv::Transaction& tx) {
    return context.queue.add(tx, type, id, data_of(body), options);
  };
  const bool is_due = !options.schedule && options.scheduled_at.value_or(0) <= context.clock.wall_ms();
  const auto poll = is_due ? context.acceptor.poll_for_add(type) : nullptr;
  const auto added = co_await add_with_poll(context, call, poll, add);
  co_return json_response(added.created || !id ? 201 : 200, added_json(added));
}

std::vector<Queue::Added> add_together(const Context& context, const std::string& type,
                                       std::span<const Queue::NewJob> jobs) {
  try {
    return context.store.run([&](kv::Transaction& tx) { return context.queue.add_all(tx, type, jobs); });
  } catch (const kv::Error& error) {
    if (error.code() != kv::ErrorCode::transaction_too_large) throw;
    throw Error(
        413, std::string(error.name()),
        fmt::format("The {} jobs of this request exceed the {} bytes that a transaction may write (each "
                    "job takes about {} bytes and its data). Add them in several requests of at most {} "
                    "small jobs.",
                    jobs.size(), kv::kMaxTransactionBytes, kBytesOfSmallJob,
                    kv::kMaxTransactionBytes / kBytesOfSmallJob));
  }
}

// POST /_jobs/{type}/_bulk
RouteResult add_bulk(const Context& context, Call& call, const std::string& type) {
  call.allow("POST");
  const Body body(call.json_body(), {"jobs"});
  const auto bodies = body.objects("jobs", kBulkAddMembers);
  std::vector<Queue::NewJob> jobs;
  jobs.reserve(bodies.size());
  std::unordered_set<std::string> ids;
  for (const Body& job : bodies) {
    jobs.push_back({job.string("id"), data_of(job), add_options(job)});
    const auto& id = jobs.back().id;
    if (id && !ids.insert(*id).second) throw bad_request(fmt::format("Job `{}` occurs twice.", *id));
  }
  const auto added = add_together(context, type, jobs);
  std::string out;
  for (const auto& one : added) out += (out.empty() ? "" : ",\n") + added_json(one);
  return json_response(201, "[" + out + "]");
}

void remove_job(const Context& context, const std::string& type, const std::string& id) {
  try {
    context.store.run([&](kv::Transaction& tx) { context.queue.remove(tx, type, id); });
  } catch (const Error& error) {
    if (error.status() != 500 || !jobs::remove_damaged(context.queue, context.store, type, id)) throw;
  }
}

// GET /_jobs/{type}/{id}
Async<RouteResult> read_job(const Context& context, Call& call, const std::string& type,
                            const std::string& id) {
  auto feed = parse_feed_options(call);
  if (feed.mode != FeedMode::normal) {
    co_await call.executor().allow_blocking();
    co_return co_await follow_job(context, call, type, id, std::move(feed));
  }
  auto json = co_await call.run(context.store, [&](kv::Transaction& tx) {
    const auto job = context.queue.find(tx, type, id, kv::Isolation::snapshot);
    if (!job) throw not_found("No such job.");
    return jobs::job_json(*job, {.data = context.queue.data(tx, *job),
                                 .result = context.queue.result(tx, *job),
                                 .history = jobs::history_json(jobs::attempts_of(tx, *job))});
  });
  co_return json_response(200, std::move(json));
}

// POST /_jobs/{type}/{id}/{action}
RouteResult job_action(const Context& context, Call& call, const std::string& type, const std::string& id,
                       const std::string& action) {
  call.allow("POST");
  const std::string json = call.has_body() ? call.json_body() : "{}";
  if (action == "_cancel") {
    const Body body(json, MemberNames());
    context.store.run([&](kv::Transaction& tx) { context.queue.cancel(tx, type, id); });
  } else if (action == "_resubmit") {
    const Body body(json, {"lock", "scheduled_at", "data"});
    const auto lock = body.string("lock");
    context.store.run([&](kv::Transaction& tx) {
      if (lock) jobs::check_owned(tx, {type, id, *lock});
      context.queue.resubmit(tx, type, id, body.integer("scheduled_at").value_or(0), body.raw("data"));
    });
  } else {
    throw not_found("missing");
  }
  return ok_response();
}

// Routes that hold a worker thread.
RouteResult blocking_route(const Context& context, Call& call) {
  const auto& path = call.path();
  if (path.size() == 1) return list_types(context, call);
  const std::string& type = path[1];
  if (path.size() == 2) return job_type(context, call, type);
  const std::string& third = path[2];
  if (path.size() == 3) {
    if (third == "_bulk") return add_bulk(context, call, type);
    if (third == "_list") return list_jobs(context, call, type);
    if (is_bulk_change(third)) return change_jobs(context, call, type, third);
    call.allow("GET,PUT,DELETE");
    remove_job(context, type, third);
    return ok_response();
  }
  if (path.size() == 4) return job_action(context, call, type, third, path[3]);
  throw not_found("missing");
}

bool is_action(std::string_view name) {
  return name == "_bulk" || name == "_list" || name == "_accept" || is_bulk_change(name) ||
         is_job_report(name);
}

}  // namespace

bool may_use_type(const Context& context, const User& user, std::string_view type) {
  if (user.admin) return true;
  // Their data have passwords, and the names of databases that the server then reads and writes.
  if (type == replicator::kJobType) return false;
  return std::none_of(context.kinds.begin(), context.kinds.end(),
                      [&](const auto& kind) { return kind->name() == type; });
}

void check_type(const Context& context, const Call& call, std::string_view type) {
  if (!may_use_type(context, call.user(), type))
    throw forbidden(
        fmt::format("Jobs of type `{}` are the server's own; only server admins may use them.", type));
}

Async<RouteResult> jobs(const Context& context, const CallPtr& call) {
  call->require_role(kJobsRole, "Jobs");
  const auto& path = call->path();
  if (path.size() > 1) check_type(context, *call, path[1]);
  if (path.size() == 2 && path[1] == "_events") co_return co_await job_events(context, *call);
  const bool is_job = path.size() == 3 && !is_action(path[2]);
  const bool is_common = path.size() == 2 && (path[1] == "_wait" || path[1] == "_accept");
  const bool adds =
      (path.size() == 2 && !is_common && call->method() == "POST") || (is_job && call->method() == "PUT");
  const bool reads = is_job && call->method() == "GET";
  const bool reports = path.size() >= 3 && path.size() <= 4 && is_job_report(path.back());
  const bool accepts = (is_common || path.size() == 3) && path.back() == "_accept";
  if ((!adds && !reads && !reports && !accepts) || !call->is_short())
    co_await call->executor().allow_blocking();
  if (adds) {
    std::optional<std::string> id;
    if (is_job) id = path[2];
    co_return co_await add_job(context, *call, path[1], id);
  }
  if (reads) co_return co_await read_job(context, *call, path[1], path[2]);
  if (reports && path.size() == 4) co_return co_await job_report(context, *call, path[1], path[2], path[3]);
  if (reports) co_return co_await bulk_job_reports(context, *call, path[1], path[2]);
  if (accepts) {
    std::optional<std::string> type;
    if (!is_common) type = path[1];
    co_return co_await accept_jobs(context, call, type);
  }
  if (is_common) co_return co_await wait_for_jobs(context, call);
  co_return blocking_route(context, *call);
}

}  // namespace divan::api
