// The job queue over HTTP. docs/jobs.md
#include <fmt/ranges.h>

#include <unordered_set>

#include "divan/api/body.h"
#include "divan/api/feed.h"
#include "divan/api/job_options.h"
#include "divan/api/routes.h"
#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/jobs/acceptor.h"
#include "divan/jobs/history.h"

namespace divan::api {
namespace {

using jobs::Attempt;
using jobs::Queue;

constexpr std::uint64_t kMaxListed = 1000;
constexpr std::uint64_t kDefaultListed = 100;
constexpr std::chrono::milliseconds kMaxAcceptWait{300'000};
// Reports that are done in one transaction.
constexpr std::size_t kMaxReports = 1000;
constexpr std::size_t kMaxReportBytes = 1 << 20;

std::string counts_json(const Context& context, kv::Transaction& tx, std::string_view type) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  for (const auto& [state, count] : context.queue.counts(tx, type))
    writer.key(jobs::state_name(state)).number(count);
  writer.end_object();
  return out;
}

std::string type_json(const Context& context, kv::Transaction& tx, std::string_view type) {
  return fmt::format(R"({{"type":{},"settings":{},"counts":{}}})", json::quoted(type),
                     jobs::settings_json(context.queue.type(tx, type)), counts_json(context, tx, type));
}

std::string added_json(const Queue::Added& added) {
  return fmt::format(R"({{"ok":true,"id":{},"created":{}}})", json::quoted(added.id), added.created);
}

// GET /_jobs
Answer list_types(const Context& context, Call& call) {
  call.allow("GET");
  const auto out = context.store.run([&](kv::Transaction& tx) {
    std::string types;
    for (const auto& type : context.queue.types(tx)) {
      if (!may_use_type(context, call.user(), type)) continue;
      types += (types.empty() ? "" : ",\n") + type_json(context, tx, type);
    }
    return types;
  });
  return json_response(200, "{\"types\":[" + out + "]}");
}

// /_jobs/{type}
Answer job_type(const Context& context, Call& call, const std::string& type) {
  call.allow("GET,PUT,POST,DELETE");
  if (call.method() == "GET") {
    return json_response(
        200, context.store.run([&](kv::Transaction& tx) { return type_json(context, tx, type); }));
  }
  if (call.method() == "PUT") {
    const std::string body = call.has_body() ? call.json_body() : "{}";
    context.store.run([&](kv::Transaction& tx) {
      const auto before = context.queue.find_type(tx, type);
      context.queue.set_type(tx, type, jobs::parse_settings(body, before.value_or(jobs::TypeSettings())));
    });
    return ok_response(201);
  }
  if (call.method() == "DELETE") {
    const bool force = call.flag("force");
    context.store.run([&](kv::Transaction& tx) { context.queue.remove_type(tx, type, force); });
    return ok_response();
  }
  const Body body(call.has_body() ? call.json_body() : "{}", kAddMembers);
  const auto added = context.store.run([&](kv::Transaction& tx) {
    return context.queue.add(tx, type, std::nullopt, data_of(body), add_options(body));
  });
  return json_response(201, added_json(added));
}

// POST /_jobs/{type}/_bulk
Answer add_bulk(const Context& context, Call& call, const std::string& type) {
  call.allow("POST");
  const Body body(call.json_body(), {"jobs"});
  const auto bodies = body.objects("jobs", {"id", "data", "scheduled_at", "priority", "schedule"});
  std::vector<Queue::NewJob> jobs;
  jobs.reserve(bodies.size());
  std::unordered_set<std::string> ids;
  for (const Body& job : bodies) {
    jobs.push_back({job.string("id"), data_of(job), add_options(job)});
    const auto& id = jobs.back().id;
    if (id && !ids.insert(*id).second) throw bad_request(fmt::format("Job `{}` comes twice.", *id));
  }
  const auto added =
      context.store.run([&](kv::Transaction& tx) { return context.queue.add_all(tx, type, jobs); });
  std::string out;
  for (const auto& one : added) out += (out.empty() ? "" : ",\n") + added_json(one);
  return json_response(201, "[" + out + "]");
}

// GET /_jobs/{type}/_list
Answer list_jobs(const Context& context, Call& call, const std::string& type) {
  call.allow("GET");
  std::optional<jobs::State> state;
  if (const auto name = call.text("state")) {
    state = jobs::state_of(*name);
    if (!state) throw bad_request("`state` is pending, running, finished, failed or cancelled.");
  }
  const std::string start = call.text("start_id").value_or("");
  const auto limit = std::min(call.count("limit").value_or(kDefaultListed), kMaxListed);
  const auto out = context.store.run([&](kv::Transaction& tx) {
    context.queue.type(tx, type);
    std::string listed;
    for (const auto& job : context.queue.list(tx, type, state, start, limit)) {
      listed += (listed.empty() ? "" : ",\n") + jobs::job_json(job);
    }
    return listed;
  });
  return json_response(200, "{\"jobs\":[" + out + "]}");
}

jobs::AcceptOptions accept_options(const Body& body) {
  jobs::AcceptOptions options;
  const auto limit = body.integer("limit").value_or(1);
  if (limit < 1 || limit > static_cast<std::int64_t>(jobs::kMaxAcceptLimit)) {
    throw bad_request(fmt::format("`limit` is 1 to {}.", jobs::kMaxAcceptLimit));
  }
  options.limit = static_cast<std::size_t>(limit);
  options.max_scheduled_at = body.integer("max_scheduled_at");
  if (const auto worker = body.raw("worker"); worker && *worker != "null") {
    const Body ref(std::string(*worker), {"role", "id", "incarnation"});
    options.worker =
        workers::WorkerRef{ref.required("role"), ref.required("id"), ref.string("incarnation").value_or("")};
  }
  return options;
}

// POST /_jobs/{type}/_accept: waits for jobs without holding a thread.
class AcceptTask final : public Task {
 public:
  AcceptTask(const Context& context, CallPtr call, std::string type, jobs::AcceptOptions options,
             const Body& body)
      : Task(context, std::move(call)), types_{std::move(type)}, options_(std::move(options)) {
    const auto timeout = std::chrono::milliseconds(body.integer("timeout").value_or(0));
    if (timeout.count() < 0) throw bad_request("`timeout` is a number of milliseconds.");
    deadline_ = context_.clock.now() + std::min(timeout, kMaxAcceptWait);
  }

  ~AcceptTask() override {
    if (!waiter_ || ended_) return;
    // The client is gone, or could not be answered.
    if (jobs_.empty()) jobs_ = context_.acceptor.abandon(waiter_);
    if (jobs_.empty()) return;
    // Not on this thread, which may be one that must not block.
    const auto jobs = std::make_shared<const std::vector<jobs::AcceptedJob>>(std::move(jobs_));
    if (!context_.pool.submit([&acceptor = context_.acceptor, jobs] { acceptor.give_back(*jobs); }))
      context_.acceptor.give_back_later(*jobs);
  }

 private:
  bool step() override {
    const bool begins = !waiter_;
    if (begins) {
      heed_stop();
      if (stopping()) return respond();
      waiter_ = context_.acceptor.join(types_, options_, waker());
    }
    auto found = context_.acceptor.step(waiter_);
    jobs_ = std::move(found.jobs);
    // Whoever stops sending while it waits is probably dead: it gets no job.
    if (!begins && exchange().half_closed()) return leave();
    const auto now = context_.clock.now();
    if (!found.done && (stopping() || now >= deadline_)) {
      if (!context_.acceptor.leave(waiter_)) return false;
      found.done = true;
    }
    if (found.done) return respond();
    wake_after(std::chrono::ceil<std::chrono::milliseconds>(std::min(deadline_, found.look_at) - now));
    return false;
  }

  // Answers without jobs; those that the waiter has go back.
  bool leave() {
    exchange().respond(json_response(200, accepted_json({})));
    return true;
  }

  bool respond() {
    auto response = json_response(200, accepted_json(jobs_));
    if (exchange().closed()) return true;
    exchange().respond(std::move(response));
    ended_ = true;
    return true;
  }

  static std::string accepted_json(const std::vector<jobs::AcceptedJob>& accepted) {
    std::string out = "{\"jobs\":[";
    for (const auto& [job, data] : accepted) {
      if (!out.ends_with('[')) out += ",\n";
      json::Writer(out)
          .begin_object()
          .key("type")
          .string(job.type)
          .key("id")
          .string(job.id)
          .key("lock")
          .string(job.lock)
          .key("epoch")
          .number(job.epoch)
          .key("attempt")
          .number(job.attempt)
          .key("data")
          .raw(data)
          .end_object();
    }
    return out + "]}";
  }

  const std::vector<std::string> types_;
  const jobs::AcceptOptions options_;
  MonotonicTime deadline_;
  std::shared_ptr<jobs::Acceptor::Waiter> waiter_;
  std::vector<jobs::AcceptedJob> jobs_;  // that the waiter got
  bool ended_ = false;                   // they are on their way to the client
};

// Of the digest of a row.
constexpr std::size_t kSequenceBytes = 8;

// The state of one job as a feed: a row for each change that is seen. A row's sequence is a digest of it:
// with it in `since`, a feed begins with the first state that is another one.
class JobSource final : public WatchingSource {
 public:
  JobSource(const Context& context, std::string type, std::string id, std::string since)
      : context_(context), type_(std::move(type)), id_(std::move(id)), last_(std::move(since)) {}

  bool read(std::size_t, std::vector<FeedRow>& rows) override {
    if (ended_) return false;
    std::string row;
    context_.store.run([&](kv::Transaction& tx) {
      row.clear();
      const auto job = context_.queue.find(tx, type_, id_, kv::Isolation::snapshot);
      if (!job && last_.empty()) throw not_found("No such job.");
      ended_ = !job || (job->state != jobs::State::pending && job->state != jobs::State::running);
      if (!job) {
        row = fmt::format(R"({{"type":{},"id":{},"state":"not_found"}})", json::quoted(type_),
                          json::quoted(id_));
        return;
      }
      const std::string data = context_.queue.data(tx, *job);
      row = jobs::job_json(*job, &data);
      watch([&] { return context_.queue.watch(tx, type_, id_); });
    });
    wait();
    std::string seq = to_hex(sha256(row, kSequenceBytes));
    if (seq == last_) return false;
    last_ = seq;
    rows.push_back({std::move(row), std::move(seq)});
    return false;
  }

  std::string last_seq() const override { return last_; }
  bool ended() const override { return ended_; }

 private:
  const Context& context_;
  const std::string type_;
  const std::string id_;
  std::string last_;  // the sequence of the row that the client has
  bool ended_ = false;
};

// /_jobs/{type}/{id}
Answer one_job(const Context& context, const CallPtr& call, const std::string& type, const std::string& id) {
  call->allow("GET,PUT,DELETE");
  if (call->method() == "PUT") {
    const Body body(call->has_body() ? call->json_body() : "{}", kAddMembers);
    const auto added = context.store.run([&](kv::Transaction& tx) {
      return context.queue.add(tx, type, std::string_view(id), data_of(body), add_options(body));
    });
    return json_response(added.created ? 201 : 200, added_json(added));
  }
  if (call->method() == "DELETE") {
    context.store.run([&](kv::Transaction& tx) { context.queue.remove(tx, type, id); });
    return ok_response();
  }
  const auto feed = parse_feed_options(*call);
  if (feed.mode != FeedMode::normal) {
    context.store.run([&](kv::Transaction& tx) {
      if (!context.queue.find(tx, type, id)) throw not_found("No such job.");
    });
    start_feed(context, call,
               std::make_unique<JobSource>(context, type, id, call->text("since").value_or("")), feed);
    return std::nullopt;
  }
  return json_response(200, context.store.run([&](kv::Transaction& tx) {
    const auto job = context.queue.find(tx, type, id, kv::Isolation::snapshot);
    if (!job) throw not_found("No such job.");
    const std::string data = context.queue.data(tx, *job);
    const std::string history = jobs::history_json(jobs::attempts_of(tx, *job));
    return jobs::job_json(*job, &data, &history);
  }));
}

// What the worker of a job says of it: one request each, or one for several jobs of a type.
bool is_report(std::string_view action) {
  return action == "_update" || action == "_finish" || action == "_fail" || action == "_release";
}

MemberNames members_of(std::string_view report) {
  static constexpr std::string_view kUpdate[] = {"id", "lock", "data", "progress"};
  static constexpr std::string_view kFinish[] = {"id", "lock", "data"};
  static constexpr std::string_view kFail[] = {"id", "lock", "error"};
  static constexpr std::string_view kRelease[] = {"id", "lock"};
  if (report == "_update") return kUpdate;
  if (report == "_finish") return kFinish;
  if (report == "_fail") return kFail;
  return kRelease;
}

// The answer to a report. Throws before it has written anything.
std::string do_report(Queue& queue, kv::Transaction& tx, std::string_view report, const Attempt& attempt,
                      const Body& body) {
  if (report == "_update") {
    const auto flags = jobs::update(queue, tx, attempt, body.raw("data"), body.raw("progress"));
    return fmt::format(R"({{"ok":true,"resubmit":{},"cancel":{}}})", flags.resubmit, flags.cancel);
  }
  if (report == "_finish") {
    jobs::finish(queue, tx, attempt, body.raw("data"));
  } else if (report == "_fail") {
    jobs::fail(queue, tx, attempt, body.string("error").value_or(""));
  } else {
    jobs::release(queue, tx, attempt);
  }
  return R"({"ok":true})";
}

// POST /_jobs/{type}/{id}/{action}
Answer job_action(const Context& context, Call& call, const std::string& type, const std::string& id,
                  const std::string& action) {
  call.allow("POST");
  const std::string json = call.has_body() ? call.json_body() : "{}";
  if (is_report(action)) {
    const Body body(json, members_of(action));
    if (body.string("id").value_or(id) != id) throw bad_request("`id` is not that of the path.");
    const Attempt attempt{type, id, body.required("lock")};
    return json_response(200, context.store.run([&](kv::Transaction& tx) {
      return do_report(context.queue, tx, action, attempt, body);
    }));
  }
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

// One of the jobs that a request reports on.
struct Report {
  Attempt attempt;
  const Body* body;
};

// All of them are looked at before anything is done.
std::vector<Report> read_reports(const std::string& type, const std::vector<Body>& jobs) {
  std::vector<Report> reports;
  reports.reserve(jobs.size());
  std::unordered_set<std::string> ids;
  for (const Body& job : jobs) {
    reports.push_back({{type, job.required("id"), job.required("lock")}, &job});
    const auto& id = reports.back().attempt.id;
    if (!ids.insert(id).second) throw bad_request(fmt::format("Job `{}` comes twice.", id));
  }
  return reports;
}

// Several reports of a kind: one answer for each job, since one that was lost does not keep the others from
// being done; as few transactions as can hold them.
class BulkReport {
 public:
  BulkReport(const Context& context, std::string_view report, std::vector<Report> reports)
      : context_(context), report_(report), reports_(std::move(reports)) {}

  /// The answers. Throws what the store does while nothing has been done; after that it is the answer to
  /// those that have not been done.
  std::vector<std::string> run() {
    for (std::size_t begin = 0, end = 0; begin < reports_.size(); begin = end) {
      for (std::size_t bytes = 0;
           end < reports_.size() && end - begin < kMaxReports && bytes < kMaxReportBytes; ++end) {
        bytes += reports_[end].body->bytes();
      }
      if (!do_some(begin, end)) break;
    }
    return std::move(answers_);
  }

 private:
  // False if the store failed.
  bool do_some(std::size_t begin, std::size_t end) {
    try {
      auto answers = context_.store.run([&](kv::Transaction& tx) { return try_some(tx, begin, end); });
      std::move(answers.begin(), answers.end(), std::back_inserter(answers_));
      return true;
    } catch (const kv::Error& error) {
      // What is written is not what was sent alone: data that wait for the next run, for example.
      const bool too_large = error.code() == kv::ErrorCode::transaction_too_large;
      if (too_large && end - begin > 1) {
        const std::size_t middle = begin + (end - begin) / 2;
        return do_some(begin, middle) && do_some(middle, end);
      }
      if (!too_large && answers_.empty()) throw;
      // Who asks again later may be heard.
      for (std::size_t i = begin; i < (too_large ? end : reports_.size()); ++i)
        answers_.push_back(refusal(i, error, too_large ? error.status() : 503));
      return too_large;
    }
  }

  std::vector<std::string> try_some(kv::Transaction& tx, std::size_t begin, std::size_t end) {
    if (tx.is_remote()) {
      std::vector<std::string_view> ids;
      for (std::size_t i = begin; i < end; ++i) ids.push_back(reports_[i].attempt.id);
      Queue::expect(tx, reports_[begin].attempt.type, ids);
    }
    std::vector<std::string> answers;
    for (std::size_t i = begin; i < end; ++i) {
      const auto& [attempt, body] = reports_[i];
      try {
        answers.push_back(do_report(context_.queue, tx, report_, attempt, *body));
      } catch (const kv::Error&) { throw; } catch (const Error& error) {
        answers.push_back(refusal(i, error, error.status()));
      }
    }
    return answers;
  }

  std::string refusal(std::size_t i, const Error& error, int status) const {
    return fmt::format(R"({{"id":{},"error":{},"reason":{},"status":{}}})",
                       json::quoted(reports_[i].attempt.id), json::quoted(error.name()),
                       json::quoted(error.reason()), status);
  }

  const Context& context_;
  const std::string_view report_;
  const std::vector<Report> reports_;
  std::vector<std::string> answers_;
};

// POST /_jobs/{type}/_update, _finish, _fail and _release
Answer bulk_reports(const Context& context, Call& call, const std::string& type, const std::string& report) {
  call.allow("POST");
  const Body body(call.json_body(), {"jobs"});
  const auto jobs = body.objects("jobs", members_of(report));
  const auto answers = BulkReport(context, report, read_reports(type, jobs)).run();
  return json_response(200, fmt::format("[{}]", fmt::join(answers, ",\n")));
}

}  // namespace

bool may_use_type(const Context& context, const User& user, std::string_view type) {
  return user.admin || std::none_of(context.kinds.begin(), context.kinds.end(),
                                    [&](const auto& kind) { return kind->name() == type; });
}

void check_type(const Context& context, const Call& call, std::string_view type) {
  if (!may_use_type(context, call.user(), type))
    throw forbidden(fmt::format("Jobs of type `{}` build the server's indexes.", type));
}

Answer jobs(const Context& context, const CallPtr& call) {
  call->require_role(kJobsRole, "Jobs");
  const auto& path = call->path();
  if (path.size() > 1) check_type(context, *call, path[1]);
  if (path.size() == 1) return list_types(context, *call);
  const std::string& type = path[1];
  if (path.size() == 2 && type == "_events") return job_events(context, call);
  if (path.size() == 2 && type == "_wait") return wait_for_jobs(context, call);
  if (path.size() == 2) return job_type(context, *call, type);
  const std::string& third = path[2];
  if (path.size() == 3) {
    if (third == "_bulk") return add_bulk(context, *call, type);
    if (third == "_list") return list_jobs(context, *call, type);
    if (is_report(third)) return bulk_reports(context, *call, type, third);
    if (third == "_accept") {
      call->allow("POST");
      const Body body(call->has_body() ? call->json_body() : "{}",
                      {"limit", "timeout", "max_scheduled_at", "worker"});
      auto options = accept_options(body);
      options.must_be_declared = true;
      if (options.worker && options.worker->role.starts_with('_') && !call->user().admin)
        throw forbidden("Workers of a role that begins with an underscore are the server's own.");
      std::make_shared<AcceptTask>(context, call, type, options, body)->start();
      return std::nullopt;
    }
    return one_job(context, call, type, third);
  }
  if (path.size() == 4) return job_action(context, *call, type, third, path[3]);
  throw not_found("missing");
}

}  // namespace divan::api
