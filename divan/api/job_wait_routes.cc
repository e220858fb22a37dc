// POST /_jobs/_wait: waits for several jobs. docs/jobs.md
#include <fmt/core.h>

#include "divan/api/body.h"
#include "divan/api/routes.h"
#include "divan/api/task.h"
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

class WaitTask final : public Task {
 public:
  WaitTask(const Context& context, CallPtr call, const Body& body)
      : Task(context, std::move(call)), wait_(context.queue, context.store, names_of(body), states_of(body)) {
    const auto timeout = body.integer("timeout").value_or(0);
    if (timeout < 0)
      throw bad_request(fmt::format("`timeout` is {}; expected milliseconds, 0 or more.", timeout));
    deadline_ = context_.clock.now() + std::min(milliseconds(timeout), kMaxWait);
    const auto count = body.integer("count").value_or(1);
    const auto jobs = static_cast<std::int64_t>(wait_.jobs().size());
    if (count < 1 || count > jobs)
      throw bad_request(fmt::format("`count` is {}; expected 1 to {}, the number of jobs.", count, jobs));
    count_ = static_cast<std::size_t>(count);
  }

 private:
  std::vector<std::pair<std::string, std::string>> names_of(const Body& body) const {
    std::vector<std::pair<std::string, std::string>> names;
    for (const Body& job : body.objects("jobs", {"type", "id"})) {
      names.emplace_back(job.required("type"), job.required("id"));
      check_type(context_, *call_, names.back().first);
    }
    return names;
  }

  bool step() override {
    if (!begun_) wake_on_stop();
    begun_ = true;
    const std::size_t reached = wait_.read(waker());
    const auto now = context_.clock.now();
    // A client that has closed its side of the connection has probably disconnected: it gets the response at
    // once.
    if (reached < count_ && now < deadline_ && !stopping() && !exchange().half_closed()) {
      auto pause = std::chrono::ceil<milliseconds>(deadline_ - now);
      if (wait_.must_poll()) pause = std::min(pause, kPollInterval);
      wake_after(pause);
      return false;
    }
    if (!exchange().closed()) exchange().respond(json_response(200, json(reached)));
    return true;
  }

  std::string json(std::size_t reached) const {
    std::string out = fmt::format(R"({{"reached":{},"jobs":[)", reached);
    for (const auto& [type, id, is_reached, job] : wait_.jobs()) {
      if (!out.ends_with('[')) out += ",\n";
      json::Writer writer(out);
      writer.begin_object().key("type").string(type).key("id").string(id);
      writer.key("state").string(job ? jobs::state_name(job->state) : "not_found");
      writer.key("reached").boolean(is_reached).end_object();
    }
    return out + "]}";
  }

  jobs::Wait wait_;
  MonotonicTime deadline_;
  std::size_t count_ = 1;
  bool begun_ = false;
};

}  // namespace

RouteResult wait_for_jobs(const Context& context, const CallPtr& call) {
  call->allow("POST");
  const Body body(call->json_body(), {"jobs", "states", "count", "timeout"});
  std::make_shared<WaitTask>(context, call, body)->start();
  return std::nullopt;
}

}  // namespace divan::api
