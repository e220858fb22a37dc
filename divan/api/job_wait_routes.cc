// POST /_jobs/_wait: waits for several jobs. docs/jobs.md
#include <fmt/core.h>

#include "divan/api/body.h"
#include "divan/api/request_waiter.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/jobs/wait.h"

namespace divan::api {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaxWait{300'000};
// Poll interval for jobs that cannot be watched.
constexpr milliseconds kPollInterval{1000};

std::set<jobs::State> states_of(const Body& body) {
  const auto names = body.raw("states");
  if (!names || *names == "null") return jobs::Wait::ended();
  std::set<jobs::State> states;
  const bool is_array = json::for_each_element(*names, [&](std::string_view element) {
    const auto name = json::string_value(element);
    const auto state = name ? jobs::state_of(*name) : std::nullopt;
    if (!state)
      throw bad_request(fmt::format(
          "Unknown state {}; expected pending, running, finished, failed or cancelled.", element));
    states.insert(*state);
    return true;
  });
  if (!is_array || states.empty())
    throw invalid_member("states", *names, "an array of pending, running, finished, failed or cancelled");
  return states;
}

std::vector<std::pair<std::string, std::string>> names_of(const Context& context, const Call& call,
                                                          const Body& body) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const Body& job : body.objects("jobs", {"type", "id"})) {
    names.emplace_back(job.required("type"), job.required("id"));
    check_type(context, call, names.back().first);
  }
  return names;
}

milliseconds timeout_of(const Body& body) {
  const auto timeout = body.integer("timeout").value_or(0);
  if (timeout < 0)
    throw bad_request(fmt::format("`timeout` is {}; expected milliseconds, 0 or more.", timeout));
  return std::min(milliseconds(timeout), kMaxWait);
}

std::size_t count_of(const Body& body, std::size_t jobs) {
  const auto count = body.integer("count").value_or(1);
  if (count < 1 || static_cast<std::size_t>(count) > jobs)
    throw bad_request(fmt::format("`count` is {}; expected 1 to {}, the number of jobs.", count, jobs));
  return static_cast<std::size_t>(count);
}

std::string json_of(const jobs::Wait& wait, std::size_t reached) {
  std::string out = fmt::format(R"({{"reached":{},"jobs":[)", reached);
  for (const auto& [type, id, is_reached, job] : wait.jobs()) {
    if (!out.ends_with('[')) out += ",\n";
    json::Writer writer(out);
    writer.begin_object().key("type").string(type).key("id").string(id);
    writer.key("state").string(job ? jobs::state_name(job->state) : "not_found");
    writer.key("reached").boolean(is_reached).end_object();
  }
  return out + "]}";
}

}  // namespace

Async<RouteResult> wait_for_jobs(const Context& context, const CallPtr& call) {
  call->allow("POST");
  const Body body(call->json_body(), {"jobs", "states", "count", "timeout"});
  jobs::Wait wait(context.queue, context.store, names_of(context, *call, body), states_of(body));
  const auto deadline = context.clock.now() + timeout_of(body);
  const std::size_t count = count_of(body, wait.jobs().size());
  RequestWaiter waiter(context, *call);
  waiter.wake_on_stop();
  for (;;) {
    const std::size_t reached = wait.read(waiter.callback());
    const auto now = context.clock.now();
    // A client that has closed its side of the connection has probably disconnected: it gets the response at
    // once.
    if (reached >= count || now >= deadline || waiter.stopping() || waiter.exchange().half_closed())
      co_return json_response(200, json_of(wait, reached));
    auto pause = std::chrono::ceil<milliseconds>(deadline - now);
    if (wait.must_poll()) pause = std::min(pause, kPollInterval);
    co_await waiter.wait(pause);
  }
}

}  // namespace divan::api
