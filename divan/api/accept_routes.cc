// Accepting jobs over HTTP, of one type or of several. docs/jobs.md
#include <fmt/core.h>

#include "divan/api/job_handover.h"
#include "divan/api/job_reports.h"
#include "divan/api/request_waiter.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/jobs/acceptor.h"

namespace divan::api {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaxAcceptWait{300'000};
constexpr std::size_t kMaxAcceptTypes = 100;
// The most jobs that an io thread accepts at once.
constexpr std::size_t kMaxShortAccept = 32;

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

std::string accepted_json(const std::vector<jobs::AcceptedJob>& accepted, const BulkReport* finishes) {
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
  out += ']';
  if (finishes) out += fmt::format(",\"finished\":{}", finishes->json());
  return out + '}';
}

MonotonicTime deadline_of(const Context& context, const Body& body) {
  const auto timeout = milliseconds(body.integer("timeout").value_or(0));
  if (timeout.count() < 0)
    throw bad_request(fmt::format("`timeout` is {}; expected milliseconds, 0 or more.", timeout.count()));
  return context.clock.now() + std::min(timeout, kMaxAcceptWait);
}

// The place of a request in the wait queue. The jobs that it was given are released after its end, unless
// they were delivered: release_undelivered().
class Place {
 public:
  Place(jobs::Acceptor& acceptor, std::shared_ptr<jobs::Acceptor::Waiter> waiter)
      : acceptor_(acceptor), waiter_(std::move(waiter)) {}
  ~Place() {
    if (!waiter_) return;
    if (jobs_.empty()) jobs_ = acceptor_.abandon(waiter_);
    if (!jobs_.empty()) acceptor_.release_undelivered_later(jobs_);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  // If it is done, the jobs are in jobs().
  jobs::Acceptor::Step step(std::size_t max_jobs) {
    auto step = acceptor_.next_step(waiter_, max_jobs);
    if (!step.jobs.empty()) jobs_ = std::move(step.jobs);
    return step;
  }
  const std::vector<jobs::AcceptedJob>& jobs() const { return jobs_; }
  bool leave() { return acceptor_.leave(waiter_); }
  void delivered() { waiter_ = nullptr; }

 private:
  jobs::Acceptor& acceptor_;
  std::shared_ptr<jobs::Acceptor::Waiter> waiter_;
  std::vector<jobs::AcceptedJob> jobs_;
};

// Makes a poll, whose transaction runs `fn`. Returns false if it failed: the next step throws the error.
template <class Fn>
Async<bool> make_poll(const Context& context, Call& call, jobs::Acceptor::Poll& poll, Fn& fn) {
  std::exception_ptr failure;
  try {
    co_await release_undelivered(context, call);
    co_await call.run(context.store, [&](kv::Transaction& tx) { fn(tx); });
  } catch (...) { failure = std::current_exception(); }
  const bool succeeded = failure == nullptr;
  context.acceptor.end_poll(poll, std::move(failure));
  co_return succeeded;
}

// Acceptor::step() that does not hold the thread during the commit.
Async<jobs::Acceptor::Step> step(const Context& context, Call& call, Place& place) {
  for (;;) {
    const std::size_t max_jobs = call.executor().may_block() ? jobs::kMaxAcceptLimit : kMaxShortAccept;
    auto step = place.step(max_jobs);
    if (!step.poll) co_return step;
    const auto poll = [&](kv::Transaction& tx) { context.acceptor.run_poll(*step.poll, tx); };
    co_await make_poll(context, call, *step.poll, poll);
    co_await release_undelivered(context, call);
  }
}

// Finishes jobs before jobs are accepted: in the transaction of the poll, if no other request polls,
// otherwise in a transaction of their own.
Async<void> finish_first(const Context& context, Call& call, Place& place, BulkReport& finishes) {
  const auto poll = finishes.is_short() ? place.step(0).poll : nullptr;
  if (!poll) co_return co_await finishes.run(call);
  std::optional<std::vector<std::string>> results;
  const std::function<void(kv::Transaction&)> finish = [&](kv::Transaction& tx) {
    results = finishes.execute(tx);
  };
  // A conflict may be due to the finishes, for which other requests must not wait.
  const std::function<void(kv::Transaction&)> none;
  int tries = 0;
  const auto finish_and_poll = [&](kv::Transaction& tx) {
    results.reset();
    context.acceptor.run_poll(*poll, tx, tries++ == 0 ? finish : none);
  };
  const bool succeeded = co_await make_poll(context, call, *poll, finish_and_poll);
  if (!succeeded) co_return;  // nothing was finished
  if (results) {
    finishes.set_results(*std::move(results));
  } else if (tries > 1) {
    co_await finishes.run(call);
  }
}

// Waits until there are jobs, and responds.
Async<RouteResult> wait_and_respond(const Context& context, Call& call, std::vector<std::string> types,
                                    const jobs::AcceptOptions& options, MonotonicTime deadline,
                                    BulkReport* finishes) {
  RequestWaiter waiter(context, call);
  waiter.wake_on_stop();
  if (waiter.stopping()) {
    if (finishes != nullptr) co_await finishes->run(call);
    co_return json_response(200, accepted_json({}, finishes));
  }
  Place place(context.acceptor, context.acceptor.join(std::move(types), options, waiter.callback()));
  if (finishes != nullptr) co_await finish_first(context, call, place, *finishes);
  for (bool has_waited = false;; has_waited = true) {
    const auto found = co_await step(context, call, place);
    // A client that closes its side while it waits is probably dead: it gets no job.
    if (has_waited && waiter.exchange().half_closed())
      co_return json_response(200, accepted_json({}, finishes));
    const auto now = context.clock.now();
    const bool leaves = !found.done && (waiter.stopping() || now >= deadline);
    if (found.done || (leaves && place.leave())) {
      auto response = json_response(200, accepted_json(place.jobs(), finishes));
      check_connected(waiter.exchange());
      waiter.exchange().respond(std::move(response));
      place.delivered();
      co_return std::nullopt;
    }
    // If it cannot leave yet, it is woken when it can.
    std::optional<milliseconds> pause;
    if (!leaves) pause = std::chrono::ceil<milliseconds>(std::min(deadline, found.poll_at) - now);
    co_await waiter.wait(pause);
  }
}

}  // namespace

// POST /_jobs/{type}/_accept, /_jobs/_accept
Async<RouteResult> accept_jobs(const Context& context, const CallPtr& call, std::optional<std::string> type) {
  call->allow("POST");
  static constexpr std::string_view kMembers[] = {"limit",  "timeout", "max_scheduled_at",
                                                  "worker", "finish",  "types"};
  // `types` is not allowed if the path names the type.
  const Body body(call->has_body() ? call->json_body() : "{}",
                  MemberNames(kMembers).first(std::size(kMembers) - (type ? 1 : 0)));
  auto types = type ? std::vector{*type} : accept_types(body);
  for (const auto& each : types) check_type(context, *call, each);
  auto options = accept_options(body);
  options.must_be_declared = true;
  if (options.worker && options.worker->role.starts_with('_') && !call->user().admin)
    throw forbidden("Roles that begin with an underscore are reserved for the server.");
  const auto deadline = deadline_of(context, body);
  std::optional<BulkReport> finishes;
  if (body.raw("finish")) {
    if (body.integer("timeout").value_or(0) > 0)
      throw bad_request("`timeout` is not allowed beside `finish`: the response does not wait for jobs.");
    finishes.emplace(context, *call, "_finish", body.objects("finish", members_of_report("_finish", !type)),
                     type);
  }
  if (options.limit > kMaxShortAccept || (finishes && !finishes->is_short()))
    co_await call->executor().allow_blocking();
  call->executor().admit();
  RouteResult result;
  std::exception_ptr failure;
  try {
    result = co_await wait_and_respond(context, *call, std::move(types), options, deadline,
                                       finishes ? &*finishes : nullptr);
  } catch (...) { failure = std::current_exception(); }
  co_await release_undelivered(context, *call);
  // The jobs were finished, even if the accept was refused.
  if (failure && finishes && finishes->has_results())
    co_return json_response(200, accepted_json({}, &*finishes));
  if (failure) std::rethrow_exception(failure);
  co_return result;
}

}  // namespace divan::api
