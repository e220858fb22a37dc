// Lists of jobs, and changes of all jobs in a state, over HTTP. docs/jobs.md
#include <fmt/core.h>

#include "divan/api/body.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/jobs/listing.h"

namespace divan::api {
namespace {

constexpr std::uint64_t kMaxListed = 1000;
constexpr std::uint64_t kDefaultListed = 100;
// Maximum number of jobs that one request changes.
constexpr std::int64_t kMaxChanged = 100'000;
constexpr std::int64_t kDefaultChanged = 10'000;
// A request ends after this time, and the next request changes the remaining jobs.
constexpr std::chrono::seconds kMaxChangeTime(5);
constexpr std::size_t kChangedPerTransaction = 250;

jobs::State parse_state(std::string_view name) {
  const auto state = jobs::state_of(name);
  if (!state) {
    throw bad_request(
        fmt::format("`state` is `{}`; expected pending, running, finished, failed or cancelled.", name));
  }
  return *state;
}

jobs::ListOptions list_options(const Call& call) {
  jobs::ListOptions options;
  if (const auto name = call.text("state")) options.state = parse_state(*name);
  options.start_id = call.text("start_id").value_or("");
  options.start = call.param("start").value_or("");
  options.descending = call.flag("descending");
  const auto limit = call.count("limit").value_or(kDefaultListed);
  if (limit > kMaxListed)
    throw bad_request(fmt::format("`limit` is {}; expected at most {}.", limit, kMaxListed));
  options.limit = limit;
  return options;
}

// `next` of a response: where the next request continues, and when the first request began, since only jobs
// that had ended by then are changed.
std::string resume_text(std::int64_t until, std::string_view start) {
  return fmt::format("{}-{}", until, start);
}

struct Resume {
  std::int64_t until;
  std::string start{};
};

Resume parse_resume(const Context& context, const std::optional<std::string>& text) {
  if (!text) return {context.clock.wall_ms()};
  const auto dash = text->find('-');
  const auto until = json::int_value(std::string_view(*text).substr(0, dash));
  if (dash == std::string::npos || !until || *until < 0)
    throw bad_request(fmt::format("`start` is `{}`; expected the `next` of an earlier response.", *text));
  return {*until, text->substr(dash + 1)};
}

}  // namespace

// GET /_jobs/{type}/_list
RouteResult list_jobs(const Context& context, Call& call, const std::string& type) {
  call.allow("GET");
  const auto options = list_options(call);
  const auto listed = context.store.run([&](kv::Transaction& tx) {
    context.queue.type(tx, type);
    return jobs::list_jobs(context.queue, tx, type, options);
  });
  std::string out;
  for (const auto& job : listed.jobs) out += (out.empty() ? "" : ",\n") + jobs::job_json(job);
  const std::string next = listed.next ? fmt::format(R"(,"next":"{}")", *listed.next) : "";
  return json_response(200, fmt::format(R"({{"jobs":[{}]{}}})", out, next));
}

bool is_bulk_change(std::string_view action) {
  return action == "_cancel" || action == "_resubmit" || action == "_remove";
}

// POST /_jobs/{type}/_cancel, _resubmit and _remove: several transactions of a bounded size.
RouteResult change_jobs(const Context& context, Call& call, const std::string& type,
                        const std::string& action) {
  call.allow("POST");
  const Body body(call.json_body(), {"state", "limit", "start"});
  const auto state = parse_state(body.required("state"));
  const auto limit = body.integer("limit").value_or(kDefaultChanged);
  if (limit < 1 || limit > kMaxChanged)
    throw bad_request(fmt::format("`limit` is {}; expected 1 to {}.", limit, kMaxChanged));
  auto resume = parse_resume(context, body.string("start"));
  const auto change = action == "_cancel"     ? jobs::BulkChange::cancel
                      : action == "_resubmit" ? jobs::BulkChange::resubmit
                                              : jobs::BulkChange::remove;
  const auto deadline = context.clock.now() + kMaxChangeTime;
  std::size_t changed = 0;
  std::optional<std::string> next = resume.start;
  std::int64_t left = 0;
  do {
    const auto some = std::min(kChangedPerTransaction, static_cast<std::size_t>(limit) - changed);
    const auto progress = context.store.run([&](kv::Transaction& tx) {
      context.queue.type(tx, type);
      auto piece = jobs::change_jobs(context.queue, tx, type, state, change, *next, resume.until, some);
      left = context.queue.counts(tx, type)[state];
      return piece;
    });
    changed += progress.jobs;
    next = progress.next;
  } while (next && changed < static_cast<std::size_t>(limit) && context.clock.now() < deadline &&
           !context.stopping && !call.exchange()->closed());
  const std::string more =
      next ? fmt::format(R"(,"next":{})", json::quoted(resume_text(resume.until, *next))) : "";
  return json_response(
      200, fmt::format(R"({{"ok":true,"changed":{},"left":{},"done":{}{}}})", changed, left, !next, more));
}

}  // namespace divan::api
