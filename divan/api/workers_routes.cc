// The membership of workers over HTTP. docs/jobs.md
#include <fmt/core.h>

#include "divan/api/body.h"
#include "divan/api/feed.h"
#include "divan/api/routes.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/sequence.h"
#include "divan/jobs/halts.h"
#include "divan/jobs/worker_jobs.h"
#include "divan/workers/monitor.h"

namespace divan::api {
namespace {

using std::chrono::milliseconds;
using workers::WorkerRef;

// Maximum interval between lines on a held connection, by which client and server detect that the other's
// machine is down.
constexpr milliseconds kMaxLineInterval{10'000};

// Maximum number of a worker's jobs in one response.
constexpr std::uint64_t kMaxJobsListed = 1000;
constexpr std::uint64_t kDefaultJobsListed = 100;

std::string ref_json(const WorkerRef& ref) {
  return fmt::format(R"({{"ok":true,"role":{},"id":{},"incarnation":"{}"}})", json::quoted(ref.role),
                     json::quoted(ref.id), ref.incarnation);
}

// `silences`: of the workers that this node observes; empty: the members are shown without them.
std::string members_json(std::string_view role, const workers::Members& members,
                         const std::map<WorkerRef, Duration>& silences = {}) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("role").string(role).key("seq").string(docs::to_sequence(members.version));
  writer.key("workers").begin_array();
  for (const auto& worker : members.workers) {
    writer.begin_object().key("id").string(worker.id).key("incarnation").string(worker.incarnation);
    writer.key("timeout").number(
        std::chrono::duration_cast<std::chrono::milliseconds>(worker.timeout).count());
    const auto silence = silences.find({std::string(role), worker.id, worker.incarnation});
    if (silence != silences.end()) writer.key("silence").number(silence->second / milliseconds(1));
    writer.key("opts").raw(worker.options).end_object();
  }
  writer.end_array().end_object();
  return out;
}

// The silence so far of the workers of a role (workers/observer.h).
std::map<WorkerRef, Duration> silences(const Context& context, std::string_view role) {
  return context.monitor == nullptr ? std::map<WorkerRef, Duration>() : context.monitor->silences(role);
}

// A role's members as a feed: a row for each change, beginning with the current members.
class MembersSource final : public WatchingSource {
 public:
  MembersSource(const Context& context, std::string role, const kv::Versionstamp& since, bool begun)
      : context_(context), role_(std::move(role)), version_(since), begun_(begun) {}

  bool read(std::size_t, std::vector<FeedRow>& rows) override {
    workers::Members members;
    context_.store.run([&](kv::Transaction& tx) {
      members = context_.registry.members(tx, role_);
      watch([&] { return context_.registry.watch(tx, role_); });
    });
    wait();
    if (begun_ && members.version <= version_) return false;
    // The version of a role without workers increases with other roles.
    const bool stays_empty = is_empty_ && members.workers.empty();
    begun_ = true;
    is_empty_ = members.workers.empty();
    version_ = members.version;
    if (stays_empty) return false;
    rows.push_back({members_json(role_, members), docs::to_sequence(version_)});
    return false;
  }

  std::string last_seq() const override { return docs::to_sequence(version_); }

 private:
  const Context& context_;
  const std::string role_;
  kv::Versionstamp version_;
  bool begun_;
  bool is_empty_ = false;  // as of the last row
};

// The body of a registration: {"timeout": ms, "opts": {...}, "incarnation": "..."}; all members are optional.
struct Registration {
  Duration timeout = workers::kDefaultTimeout;
  std::string options = "{}";
  std::string incarnation;
};

Registration parse_registration(Call& call) {
  Registration registration;
  if (!call.has_body()) return registration;
  const Body body(call.json_body(), {"timeout", "opts", "incarnation"});
  if (const auto timeout =
          body.milliseconds("timeout", std::chrono::floor<milliseconds>(workers::kMaxTimeout)))
    registration.timeout = *timeout;
  if (const auto options = body.raw("opts")) registration.options = *options;
  registration.incarnation = body.string("incarnation").value_or("");
  return registration;
}

WorkerRef add(const Context& context, kv::Transaction& tx, const CallPtr& call,
              const Registration& registration) {
  const auto& path = call->path();
  return context.registry.add(tx, path[1], path[2], registration.options, registration.timeout,
                              registration.incarnation);
}

std::string registered_json(const WorkerRef& ref, const Registration& registration) {
  std::string json = ref_json(ref);
  json.insert(json.size() - 1, fmt::format(R"(,"timeout":{})", registration.timeout / milliseconds(1)));
  return json;
}

constexpr std::string_view kHaltLine = R"({"error":"halt","reason":"The registration is no longer valid."})"
                                       "\n";

// A registration that ends with its connection.
class HeldRegistration {
 public:
  HeldRegistration(const Context& context, const CallPtr& call, const Registration& registration)
      : context_(context) {
    context_.store.run([&](kv::Transaction& tx) {
      hold_ = context_.registry.hold(tx, add(context_, tx, call, registration));
      watch(tx);
    });
  }
  // Removes the worker at once. If that fails, or the server stops, it is evicted for its missing heartbeat.
  ~HeldRegistration() {
    if (has_ended_ || context_.stopping) return;
    try {
      context_.store.run([&](kv::Transaction& tx) { context_.registry.end_held(tx, *hold_); });
    } catch (const std::exception& error) {
      log::error("Cannot remove worker {} of role {}, whose connection has ended: {}", hold_->ref.id,
                 hold_->ref.role, error.what());
    }
  }
  HeldRegistration(const HeldRegistration&) = delete;
  HeldRegistration& operator=(const HeldRegistration&) = delete;

  const WorkerRef& ref() const { return hold_->ref; }

  workers::HoldState read_state() {
    if (!is_over(watch_)) return workers::HoldState::holds;
    const auto state = context_.store.run([&](kv::Transaction& tx) {
      watch(tx);
      return context_.registry.state(tx, *hold_);
    });
    has_ended_ = state != workers::HoldState::holds;
    return state;
  }

  // Returns a line for each attempt of the worker that was ended since the last call.
  std::string take_halts() {
    if (!is_over(halts_watch_)) return {};
    return context_.store.run([&](kv::Transaction& tx) {
      std::string lines;
      for (const auto& halt : jobs::take_halts(tx, ref().role, ref().id)) {
        std::string line;
        json::Writer writer(line);
        writer.begin_object().key("halt").begin_object();
        writer.key("type").string(halt.attempt.type).key("id").string(halt.attempt.id);
        writer.key("lock").string(halt.attempt.lock).key("epoch").number(halt.epoch);
        writer.key("reason").string(halt.reason).end_object().end_object();
        lines += line + '\n';
      }
      halts_watch_ = nullptr;  // first, since the store may be at its limit
      halts_watch_ = jobs::watch_halts(tx, ref().role, ref().id);
      return lines;
    });
  }

  // Calls `callback` when there may be something to read.
  void on_change(const std::function<void()>& callback) {
    if (watch_ != nullptr) watch_->on_end(callback);
    if (halts_watch_ != nullptr) halts_watch_->on_end(callback);
  }

 private:
  // Also returns true without a watch, of which the store may have too many: it is then read before each
  // line.
  static bool is_over(const std::shared_ptr<kv::Watch>& watch) {
    return watch == nullptr || watch->fired() || watch->cancelled();
  }

  void watch(kv::Transaction& tx) {
    watch_ = nullptr;
    watch_ = context_.registry.watch(tx, *hold_);
  }

  const Context& context_;
  std::optional<workers::Hold> hold_;       // always set after the constructor
  bool has_ended_ = false;                  // the registration ended before its connection
  std::shared_ptr<kv::Watch> watch_;        // on the hold
  std::shared_ptr<kv::Watch> halts_watch_;  // on attempts that were ended
};

// POST /_workers/{role}/{id}/_hold: the registration ends with the connection. If the registration ends
// first, the response says so at once and ends. The connection does not replace heartbeats: the client must
// send them as well.
Async<RouteResult> hold(const Context& context, const CallPtr& call) {
  call->allow("POST");
  const auto registration = parse_registration(*call);
  http::Exchange& exchange = *call->exchange();
  if (exchange.half_closed())
    throw bad_request("The registration ends with its connection, and the client has closed its side of it.");
  RequestWaiter waiter(context, *call);
  waiter.wake_on_stop();
  if (waiter.stopping()) throw Error(503, "service_unavailable", "The server is stopping.");
  HeldRegistration held(context, call, registration);
  http::Response head;
  head.headers.push_back({"Content-Type", "application/json"});
  head.body = registered_json(held.ref(), registration) + "\n";
  exchange.start(std::move(head));
  for (;;) {
    if (std::string lines = held.take_halts(); !lines.empty()) exchange.write(std::move(lines));
    held.on_change(waiter.callback());
    co_await waiter.wait(
        std::min(std::chrono::ceil<milliseconds>(registration.timeout / 3), kMaxLineInterval));
    if (exchange.half_closed() || waiter.stopping()) break;
    const auto state = held.read_state();
    if (state == workers::HoldState::ended) exchange.write(std::string(kHaltLine));
    if (state != workers::HoldState::holds) break;
    exchange.write("\n");
  }
  exchange.end();
  co_return std::nullopt;
}

RouteResult one_worker(const Context& context, const CallPtr& call, const std::string& role,
                       const std::string& id) {
  call->allow("GET,PUT,DELETE");
  if (call->method() == "PUT") {
    const auto registration = parse_registration(*call);
    const auto ref =
        context.store.run([&](kv::Transaction& tx) { return add(context, tx, call, registration); });
    return json_response(201, registered_json(ref, registration));
  }
  if (call->method() == "DELETE") {
    const auto incarnation = call->param("incarnation");
    context.store.run([&](kv::Transaction& tx) {
      const auto ref = context.registry.find(tx, role, id);
      if (!ref || (incarnation && ref->incarnation != *incarnation)) throw not_found("No such registration.");
      context.registry.remove(tx, *ref);
    });
    return ok_response();
  }
  const auto ref =
      context.store.run([&](kv::Transaction& tx) { return context.registry.find(tx, role, id); });
  if (!ref) throw not_found("No such worker.");
  return json_response(200, ref_json(*ref));
}

RouteResult heartbeat(const Context& context, const CallPtr& call, const std::string& role,
                      const std::string& id) {
  call->allow("POST");
  const Body body(call->has_body() ? call->json_body() : "{}", {"incarnation"});
  const auto incarnation = body.string("incarnation");
  const bool alive = context.store.run([&](kv::Transaction& tx) {
    const auto ref = context.registry.find(tx, role, id);
    if (!ref || (incarnation && ref->incarnation != *incarnation)) return false;
    return context.registry.heartbeat(tx, *ref);
  });
  if (!alive) throw Error(409, "halt", "The registration is no longer valid.");
  return ok_response();
}

// GET /_workers/{role}/{id}/_jobs?type=...: for a worker that is no longer registered, its jobs that were not
// reclaimed yet.
RouteResult jobs_of_one_worker(const Context& context, const CallPtr& call, const std::string& role,
                               const std::string& id) {
  call->allow("GET");
  const auto type = call->text("type");
  if (!type) throw bad_request("`type` is missing; expected a job type.");
  check_type(context, *call, *type);
  const auto limit = call->count("limit").value_or(kDefaultJobsListed);
  if (limit == 0 || limit > kMaxJobsListed)
    throw bad_request(fmt::format("`limit` is {}; expected 1 to {}.", limit, kMaxJobsListed));
  const auto start = call->text("start_id").value_or("");
  const auto listed = context.store.run([&](kv::Transaction& tx) {
    context.queue.type(tx, *type);
    std::string out;
    for (const auto& job : jobs::jobs_of_worker(context.queue, tx, role, id, *type, start, limit))
      out += (out.empty() ? "" : ",\n") + jobs::job_json(job);
    return out;
  });
  return json_response(200, "{\"jobs\":[" + listed + "]}");
}

Async<RouteResult> one_role(const Context& context, const CallPtr& call, const std::string& role) {
  call->allow("GET");
  auto feed = parse_feed_options(*call);
  if (feed.mode == FeedMode::normal) {
    const auto members =
        context.store.run([&](kv::Transaction& tx) { return context.registry.members(tx, role); });
    co_return json_response(200, members_json(role, members, silences(context, role)));
  }
  const auto since = call->text("since");
  auto source = std::make_unique<MembersSource>(
      context, role, since ? docs::parse_sequence(*since) : kv::Versionstamp(), since.has_value());
  co_return co_await respond_with_feed(context, *call, std::move(source), std::move(feed));
}

}  // namespace

Async<RouteResult> workers(const Context& context, const CallPtr& call) {
  call->require_role(kJobsRole, "Workers");
  const auto& path = call->path();
  if (path.size() > 2 && path[1].starts_with('_') && !call->user().admin && call->method() != "GET")
    throw forbidden("Roles that begin with an underscore are reserved for the server.");
  if (path.size() == 1) {
    call->allow("GET");
    const auto roles = context.store.run([&](kv::Transaction& tx) {
      std::vector<std::pair<std::string, workers::Members>> members;
      for (auto& role : context.registry.roles(tx)) {
        auto of_role = context.registry.members(tx, role);
        members.emplace_back(std::move(role), std::move(of_role));
      }
      return members;
    });
    std::string out;
    for (const auto& [role, members] : roles)
      out += (out.empty() ? "" : ",\n") + members_json(role, members, silences(context, role));
    co_return json_response(200, "{\"roles\":[" + out + "]}");
  }
  if (path.size() == 2) co_return co_await one_role(context, call, path[1]);
  if (path.size() == 3) co_return one_worker(context, call, path[1], path[2]);
  if (path.size() == 4 && path[3] == "_jobs") co_return jobs_of_one_worker(context, call, path[1], path[2]);
  if (path.size() == 4 && path[3] == "_heartbeat") co_return heartbeat(context, call, path[1], path[2]);
  if (path.size() == 4 && path[3] == "_hold") co_return co_await hold(context, call);
  throw not_found("missing");
}

}  // namespace divan::api
