// Accepting jobs over HTTP, of one type or of several. docs/jobs.md
#include <fmt/core.h>

#include "divan/api/body.h"
#include "divan/api/routes.h"
#include "divan/api/task.h"
#include "divan/base/json.h"
#include "divan/jobs/acceptor.h"

namespace divan::api {
namespace {

constexpr std::chrono::milliseconds kMaxAcceptWait{300'000};
constexpr std::size_t kMaxAcceptTypes = 100;

jobs::AcceptOptions accept_options(const Body& body) {
  jobs::AcceptOptions options;
  const auto limit = body.integer("limit").value_or(1);
  if (limit < 1 || limit > static_cast<std::int64_t>(jobs::kMaxAcceptLimit)) {
    throw bad_request(fmt::format("`limit` is {}; expected 1 to {}.", limit, jobs::kMaxAcceptLimit));
  }
  options.limit = static_cast<std::size_t>(limit);
  options.max_scheduled_at = body.integer("max_scheduled_at");
  if (const auto worker = body.object("worker", {"role", "id", "incarnation"})) {
    options.worker = workers::WorkerRef{worker->required("role"), worker->required("id"),
                                        worker->string("incarnation").value_or("")};
  }
  return options;
}

// The types in the body of a request whose path does not name one.
std::vector<std::string> accept_types(const Body& body) {
  auto types = body.strings("types");
  if (types.empty() || types.size() > kMaxAcceptTypes) {
    throw bad_request(
        fmt::format("`types` has {} job types; expected 1 to {}.", types.size(), kMaxAcceptTypes));
  }
  std::set<std::string_view> seen;
  for (const auto& type : types) {
    if (!seen.insert(type).second) throw bad_request(fmt::format("`types` has `{}` twice.", type));
  }
  return types;
}

// POST /_jobs/{type}/_accept, /_jobs/_accept: waits for jobs without holding a thread.
class AcceptTask final : public Task {
 public:
  AcceptTask(const Context& context, CallPtr call, std::vector<std::string> types,
             jobs::AcceptOptions options, const Body& body)
      : Task(context, std::move(call)), types_(std::move(types)), options_(std::move(options)) {
    const auto timeout = std::chrono::milliseconds(body.integer("timeout").value_or(0));
    if (timeout.count() < 0)
      throw bad_request(fmt::format("`timeout` is {}; expected milliseconds, 0 or more.", timeout.count()));
    deadline_ = context_.clock.now() + std::min(timeout, kMaxAcceptWait);
  }

  ~AcceptTask() override {
    if (!waiter_ || ended_) return;
    // The client has disconnected, or the response could not be sent.
    if (jobs_.empty()) jobs_ = context_.acceptor.abandon(waiter_);
    if (jobs_.empty()) return;
    // Not on this thread, which may be one that must not block.
    const auto jobs = std::make_shared<const std::vector<jobs::AcceptedJob>>(std::move(jobs_));
    if (!context_.pool.submit([&acceptor = context_.acceptor, jobs] { acceptor.release_undelivered(*jobs); }))
      context_.acceptor.release_undelivered_later(*jobs);
  }

 private:
  bool step() override {
    const bool begins = !waiter_;
    if (begins) {
      wake_on_stop();
      if (stopping()) return respond();
      waiter_ = context_.acceptor.join(types_, options_, waker());
    }
    auto found = context_.acceptor.step(waiter_);
    jobs_ = std::move(found.jobs);
    // A client that closes its side while it waits is probably dead: it gets no job.
    if (!begins && exchange().half_closed()) return leave();
    const auto now = context_.clock.now();
    if (!found.done && (stopping() || now >= deadline_)) {
      if (!context_.acceptor.leave(waiter_)) return false;
      found.done = true;
    }
    if (found.done) return respond();
    wake_after(std::chrono::ceil<std::chrono::milliseconds>(std::min(deadline_, found.poll_at) - now));
    return false;
  }

  // Responds without jobs; those that the waiter has are released.
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
  std::vector<jobs::AcceptedJob> jobs_;  // accepted by the waiter
  bool ended_ = false;                   // the response has been sent
};

}  // namespace

RouteResult accept_jobs(const Context& context, const CallPtr& call, const std::optional<std::string>& type) {
  call->allow("POST");
  static constexpr std::string_view kMembers[] = {"limit", "timeout", "max_scheduled_at", "worker", "types"};
  // `types` is not allowed if the path names the type.
  const Body body(call->has_body() ? call->json_body() : "{}",
                  MemberNames(kMembers).first(std::size(kMembers) - (type ? 1 : 0)));
  auto types = type ? std::vector{*type} : accept_types(body);
  for (const auto& each : types) check_type(context, *call, each);
  auto options = accept_options(body);
  options.must_be_declared = true;
  if (options.worker && options.worker->role.starts_with('_') && !call->user().admin)
    throw forbidden("Roles that begin with an underscore are reserved for the server.");
  std::make_shared<AcceptTask>(context, call, std::move(types), options, body)->start();
  return std::nullopt;
}

}  // namespace divan::api
