// Reports of workers on their jobs over HTTP: one in a request, or several on jobs of one type. docs/jobs.md
#include "divan/api/job_reports.h"

#include <fmt/ranges.h>

#include <set>

#include "divan/api/errors.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/jobs/attempts.h"

namespace divan::api {
namespace {

using jobs::Attempt;
using jobs::Queue;

// Maximum number of reports in one transaction.
constexpr std::size_t kMaxReports = 1000;
constexpr std::size_t kMaxReportBytes = 1 << 20;
// The most reports that an io thread executes at once.
constexpr std::size_t kMaxShortReports = 32;
constexpr std::size_t kMaxShortReportBytes = 64 << 10;
// Maximum delay that a worker may request.
constexpr std::chrono::milliseconds kMaxDelay = std::chrono::hours(24 * 365);

// Executes a report and returns its result. Throws before it has written anything.
std::string execute_report(Queue& queue, kv::Transaction& tx, std::string_view report, const Attempt& attempt,
                           const Body& body) {
  if (report == "_update") {
    const auto flags = jobs::update(queue, tx, attempt, body.raw("data"), body.raw("progress"));
    return fmt::format(R"({{"ok":true,"resubmit":{},"cancel":{}}})", flags.resubmit, flags.cancel);
  }
  if (report == "_finish") {
    jobs::finish(queue, tx, attempt, body.raw("data"), std::nullopt, body.raw("result"));
  } else if (report == "_fail") {
    const jobs::FailOptions options{.retry = body.boolean("retry").value_or(true),
                                    .delay = body.milliseconds("delay", kMaxDelay)};
    if (options.delay && !options.retry) throw bad_request("`delay` is not allowed if `retry` is false.");
    jobs::fail(queue, tx, attempt, body.string("error").value_or(""), options);
  } else {
    jobs::release(queue, tx, attempt, body.milliseconds("delay", kMaxDelay));
  }
  return R"({"ok":true})";
}

}  // namespace

MemberNames members_of_report(std::string_view report, bool with_type) {
  static constexpr std::string_view kUpdate[] = {"id", "lock", "data", "progress", "type"};
  static constexpr std::string_view kFinish[] = {"id", "lock", "data", "result", "type"};
  static constexpr std::string_view kFail[] = {"id", "lock", "error", "retry", "delay", "type"};
  static constexpr std::string_view kRelease[] = {"id", "lock", "delay", "type"};
  const MemberNames names = report == "_update"   ? MemberNames(kUpdate)
                            : report == "_finish" ? MemberNames(kFinish)
                            : report == "_fail"   ? MemberNames(kFail)
                                                  : MemberNames(kRelease);
  return with_type ? names : names.first(names.size() - 1);
}

BulkReport::BulkReport(const Context& context, const Call& call, std::string report, std::vector<Body> jobs,
                       const std::optional<std::string>& type)
    : context_(context), report_(std::move(report)), bodies_(std::move(jobs)) {
  reports_.reserve(bodies_.size());
  std::set<std::pair<std::string, std::string>> seen;
  for (const Body& job : bodies_) {
    Attempt attempt{type ? *type : job.required("type"), job.required("id"), job.required("lock")};
    if (!type) check_type(context, call, attempt.type);
    if (!seen.emplace(attempt.type, attempt.id).second)
      throw bad_request(fmt::format("Job `{}` occurs twice.", attempt.id));
    reports_.push_back({std::move(attempt), &job});
    bytes_ += job.bytes();
  }
}

bool BulkReport::is_short() const {
  return reports_.size() <= kMaxShortReports && bytes_ <= kMaxShortReportBytes;
}

Async<void> BulkReport::run(Call& call) {
  if (!is_short()) co_await call.executor().allow_blocking();
  std::vector<std::size_t> ends;  // of batches that were divided
  while (results_.size() < reports_.size()) {
    const std::size_t begin = results_.size();
    if (ends.empty()) ends.push_back(batch_end(begin));
    const std::size_t end = ends.back();
    std::optional<kv::Error> failure;
    try {
      auto results = co_await call.run(context_.store,
                                       [&](kv::Transaction& tx) { return execute_some(tx, begin, end); });
      std::move(results.begin(), results.end(), std::back_inserter(results_));
      ends.pop_back();
    } catch (const kv::Error& error) { failure = error; }
    if (!failure) continue;
    // More is written than was sent: data that wait for the next run, for example.
    const bool too_large = failure->code() == kv::ErrorCode::transaction_too_large;
    if (too_large && end - begin > 1) {
      ends.push_back(begin + (end - begin) / 2);
      continue;
    }
    if (!too_large && results_.empty()) throw *failure;
    // 503 unless the report is too large by itself, since a later retry may succeed.
    const Error refused = http_error(*failure);
    for (std::size_t i = begin; i < (too_large ? end : reports_.size()); ++i)
      results_.push_back(refusal(i, refused, too_large ? 413 : 503));
    ends.pop_back();
  }
}

std::string BulkReport::json() const { return fmt::format("[{}]", fmt::join(results_, ",\n")); }

std::size_t BulkReport::batch_end(std::size_t begin) const {
  std::size_t end = begin;
  for (std::size_t bytes = 0; end < reports_.size() && end - begin < kMaxReports && bytes < kMaxReportBytes;
       ++end) {
    bytes += reports_[end].body->bytes();
  }
  return end;
}

std::vector<std::string> BulkReport::execute_some(kv::Transaction& tx, std::size_t begin,
                                                  std::size_t end) const {
  if (tx.is_remote()) {
    kv::Prefetch reads;
    for (std::size_t i = begin; i < end; ++i)
      jobs::prefetch_job(reads, reports_[i].attempt.type, reports_[i].attempt.id);
    tx.prefetch(reads);
  }
  std::vector<std::string> results;
  for (std::size_t i = begin; i < end; ++i) {
    const auto& [attempt, body] = reports_[i];
    try {
      results.push_back(execute_report(context_.queue, tx, report_, attempt, *body));
    } catch (const Error& error) { results.push_back(refusal(i, error, error.status())); }
  }
  return results;
}

std::string BulkReport::refusal(std::size_t i, const Error& error, int status) const {
  return fmt::format(R"({{"id":{},"error":{},"reason":{},"status":{}}})",
                     json::quoted(reports_[i].attempt.id), json::quoted(error.name()),
                     json::quoted(error.reason()), status);
}

bool is_job_report(std::string_view action) {
  return action == "_update" || action == "_finish" || action == "_fail" || action == "_release";
}

// POST /_jobs/{type}/{id}/_update, _finish, _fail and _release
Async<RouteResult> job_report(const Context& context, Call& call, const std::string& type,
                              const std::string& id, const std::string& report) {
  call.allow("POST");
  static constexpr std::string_view kRelease[] = {"id", "lock", "epoch", "delay"};
  const bool releases = report == "_release";
  const Body body(call.has_body() ? call.json_body() : "{}",
                  releases ? MemberNames(kRelease) : members_of_report(report));
  if (body.string("id").value_or(id) != id) throw bad_request("`id` differs from the id in the path.");
  if (const auto epoch = releases ? body.integer("epoch") : std::nullopt) {
    if (body.string("lock")) throw bad_request("`lock` and `epoch` exclude each other.");
    co_await call.run(context.store, [&](kv::Transaction& tx) {
      jobs::release_without_lock(context.queue, tx, type, id, *epoch, body.milliseconds("delay", kMaxDelay));
    });
    co_return ok_response();
  }
  const Attempt attempt{type, id, body.required("lock")};
  auto result = co_await call.run(context.store, [&](kv::Transaction& tx) {
    return execute_report(context.queue, tx, report, attempt, body);
  });
  co_return json_response(200, std::move(result));
}

// POST /_jobs/{type}/_update, _finish, _fail and _release
Async<RouteResult> bulk_job_reports(const Context& context, Call& call, const std::string& type,
                                    const std::string& report) {
  call.allow("POST");
  const Body body(call.json_body(), {"jobs"});
  BulkReport reports(context, call, report, body.objects("jobs", members_of_report(report)), type);
  co_await reports.run(call);
  co_return json_response(200, reports.json());
}

}  // namespace divan::api
