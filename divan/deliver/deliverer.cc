#include "divan/deliver/deliverer.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>

#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/deliver/message.h"
#include "divan/http_client/url.h"

namespace divan::deliver {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kThreads = 4;
constexpr std::size_t kMaxTasks = 100'000;
// How often the number of nodes is read, and the settings of types in case that a watch was lost.
constexpr Duration kRefreshInterval = seconds(5);
constexpr Duration kRetryInterval = seconds(1);
// How long stop() waits for responses.
constexpr Duration kGrace = seconds(3);
// The most jobs that are accepted and wait to be sent, as a multiple of the requests.
constexpr std::size_t kMaxAccepted = 2;
// The most jobs in a transaction that reports, and of their results.
constexpr std::size_t kReportedAtOnce = 100;
constexpr std::size_t kReportedBytes = 2'000'000;
constexpr int kMaxRedirects = 3;
// A host is quick if its last response came within this time, and how many of them are remembered.
constexpr Duration kQuick = seconds(1);
constexpr std::size_t kMaxQuickHosts = 100'000;
// In the load of the worker.
constexpr std::size_t kMaxShownTypes = 100;
constexpr std::size_t kMaxStatusBytes = 50'000;
// Of responses, together; one may always have the share.
constexpr MemoryLimits kResponseMemory{.all = 128 << 20, .of_one = 128 << 20, .share = 1 << 20};

std::size_t divided(std::size_t limit, std::size_t nodes) { return std::max<std::size_t>(1, limit / nodes); }

Error stopped() { return {503, "stopped", "The server is being stopped."}; }

}  // namespace

AddressRules address_rules(const Config& config) {
  return {config.get(kSection, "allow", ""), config.get(kSection, "deny", "")};
}

std::string proxy_of(const Config& config) {
  auto proxy = config.get(kSection, "proxy", "");
  // It may have a password.
  if (!proxy.empty() && !http_client::is_proxy_url(proxy))
    throw bad_request("[deliver] proxy must be a URL with the scheme http, https, socks5 or socks5h.");
  return proxy;
}

// A type whose jobs are delivered.
struct Deliverer::Type {
  explicit Type(std::string the_name) : name(std::move(the_name)) {}

  const std::string name;
  std::string json{};                          // of its settings
  std::shared_ptr<const Settings> settings{};  // of later requests; null: it is not delivered any more
  Pacer pacer{};
  std::shared_ptr<jobs::Acceptor::Waiter> waiter{};
  MonotonicTime timer = MonotonicTime::max();
  bool is_blocked = false;  // in blocked_
  std::string last_error{};
  std::atomic<unsigned> wakes = 0;  // since its poll began; 0: none is to be made. Not protected.
};

// An accepted job, until its request has ended.
struct Deliverer::Delivery {
  std::uint64_t number = 0;
  TypePtr type{};
  jobs::AcceptedJob job{};
  std::shared_ptr<const Settings> settings{};
  http_client::Request request{};
  int redirects = 0;
  bool counts_as_other = false;  // in sending_other_
  MonotonicTime sent_at{};
  bool is_sent = false;
  std::unique_ptr<http_client::AsyncClient::Pending> pending{};
};

struct Deliverer::Host {
  std::size_t sending = 0;
  std::deque<std::uint64_t> waiting{};  // numbers of deliveries
  bool is_due = false;                  // in quick_turns_ or other_turns_
};

Deliverer::Limits Deliverer::read_limits(const Config& config) {
  Limits limits;
  limits.requests =
      static_cast<std::size_t>(config.get_int(kSection, kMaxRequests, kDefaultMaxRequests, 1, kMostRequests));
  limits.requests_of_host = static_cast<std::size_t>(
      config.get_int(kSection, kMaxRequestsPerHost, kDefaultMaxRequestsPerHost, 1, kMostRequests));
  limits.http.proxy = proxy_of(config);
  limits.http.authorities_file = config.get(kSection, "ssl_trusted_certificates_file", "");
  limits.rules = std::make_shared<const AddressRules>(address_rules(config));
  return limits;
}

Deliverer::Deliverer(kv::Database& store, jobs::Queue& queue, jobs::Acceptor& acceptor,
                     workers::Monitor& monitor, const Clock& clock, const Config& config)
    : store_(store),
      queue_(queue),
      acceptor_(acceptor),
      monitor_(monitor),
      clock_(clock),
      config_(config),
      response_memory_(kResponseMemory, MutexRank::response_memory),
      watched_types_(queue, store),
      pool_("deliver", kThreads, kMaxTasks),
      client_({.thread_name = "deliver_http"}),
      loop_(clock, "deliver_loop", [this] { return step(); }) {}

Deliverer::~Deliverer() { stop(); }

void Deliverer::start(std::string_view worker_id) {
  configure();
  worker_id_ = worker_id;
  worker_ = monitor_.add(kRole, worker_id, "{}", workers::kDefaultTimeout, [this] { return status(); });
  loop_.start();
}

void Deliverer::configure() {
  auto limits = read_limits(config_);
  std::lock_guard lock(mutex_);
  limits_ = std::move(limits);
  limits_.http.memory = &response_memory_;
  for (const auto& [name, type] : types_) {
    type->pacer.close();
    set_timer(type, clock_.now());
  }
  loop_.notify();
}

void Deliverer::stop() {
  loop_.stop();
  loop_.join();
  std::unique_lock lock(mutex_);
  if (!stopping_) {
    stopping_ = true;
    for (const auto& [name, type] : types_) remove_type(type);
    types_.clear();
    std::vector<std::uint64_t> unsent;
    for (const auto& [number, delivery] : deliveries_) {
      if (!delivery.is_sent) unsent.push_back(number);
    }
    const http_client::AsyncClient::Result result{.error = std::make_exception_ptr(stopped())};
    for (const auto number : unsent) end(number, result);
    clock_.wait_until(lock, idle_, clock_.now() + kGrace, [this] { return deliveries_.empty(); });
    while (!deliveries_.empty()) end(deliveries_.begin()->first, result);
  }
  lock.unlock();
  pool_.stop();
  worker_.reset();
}

MonotonicTime Deliverer::step() {
  const auto now = clock_.now();
  if (now >= refresh_at_ || watched_types_.may_have_changed()) {
    refresh();
    refresh_at_ = now + kRefreshInterval;
  }
  std::lock_guard lock(mutex_);
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto type = types_.at(timers_.begin()->second);
    set_timer(type, MonotonicTime::max());
    type->waiter ? wake(type) : accept_more(type);
  }
  if (report_again_at_ <= now) {
    report_again_at_ = MonotonicTime::max();
    schedule_report();
  }
  const auto next = timers_.empty() ? MonotonicTime::max() : timers_.begin()->first;
  return std::min({next, report_again_at_, refresh_at_});
}

void Deliverer::refresh() {
  const bool has_changed = watched_types_.refresh(loop_.notifier());
  const auto nodes =
      store_.run([&](kv::Transaction& tx) { return queue_.registry().members(tx, kRole).workers.size(); });
  std::lock_guard lock(mutex_);
  if (const auto known = std::max<std::size_t>(1, nodes); known != nodes_) {
    nodes_ = known;
    for (const auto& [name, type] : types_) set_pace(*type);
  }
  if (!has_changed) return;
  const auto& all = watched_types_.types();
  for (auto it = types_.begin(); it != types_.end();) {
    const auto type = it->second;
    const auto found = all.find(it->first);
    const bool is_delivered = found != all.end() && !found->second.deliver.empty();
    if (!is_delivered) remove_type(type);
    it = is_delivered ? std::next(it) : types_.erase(it);
  }
  for (const auto& [name, settings] : all) {
    if (!settings.deliver.empty()) update_type(name, settings.deliver);
  }
}

void Deliverer::update_type(const std::string& name, const std::string& json) {
  auto& type = types_[name];
  if (!type) type = std::make_shared<Type>(name);
  if (type->json == json) return;
  type->json = json;
  try {
    type->settings = std::make_shared<const Settings>(parse_settings(json));
  } catch (const Error& error) {
    log::error("Jobs of type {} are not delivered: {}", name, error.reason());
    remove_type(type);
    return;
  }
  type->pacer.close();
  set_pace(*type);
  accept_more(type);
}

void Deliverer::set_pace(Type& type) {
  Pacer::Limits limits{.concurrency = divided(type.settings->concurrency, nodes_)};
  if (type.settings->per_second) limits.per_second = *type.settings->per_second / static_cast<double>(nodes_);
  type.pacer.set_limits(limits, clock_.now());
}

// Its requests end as they began.
void Deliverer::remove_type(const TypePtr& type) {
  type->settings.reset();
  set_timer(type, MonotonicTime::max());
  if (!type->waiter) return;
  acceptor_.release_undelivered_later(acceptor_.abandon(std::exchange(type->waiter, nullptr)));
}

void Deliverer::set_timer(const TypePtr& type, MonotonicTime at) {
  if (type->timer != MonotonicTime::max()) timers_.erase({type->timer, type->name});
  type->timer = at;
  if (at == MonotonicTime::max()) return;
  timers_.emplace(at, type->name);
  if (timers_.begin()->second == type->name) loop_.notify();
}

void Deliverer::accept_more(const TypePtr& type) {
  if (stopping_ || !type->settings || type->waiter) return;
  const auto now = clock_.now();
  if (deliveries_.size() >= kMaxAccepted * limits_.requests) {
    if (!std::exchange(type->is_blocked, true)) blocked_.push_back(type->name);
    return;
  }
  const auto share = std::max<std::size_t>(1, std::min(limits_.requests, limits_.requests_of_host) / 2);
  const auto running = type->pacer.running();
  const auto count =
      std::min({type->pacer.allowed(now), running < share ? share - running : 0, jobs::kMaxAcceptLimit});
  if (count == 0) {
    if (const auto at = type->pacer.next_time(now)) set_timer(type, *at);
    return;
  }
  type->waiter = acceptor_.join(
      {type->name}, {.limit = count, .worker = workers::WorkerRef{std::string(kRole), worker_id_, {}}},
      [this, weak = std::weak_ptr(type)] {
        // Called while the acceptor is locked.
        if (const auto woken = weak.lock()) wake(woken);
      });
  wake(type);
}

void Deliverer::accept_blocked() {
  if (blocked_.empty()) return;
  const auto name = std::move(blocked_.front());
  blocked_.pop_front();
  const auto type = types_.find(name);
  if (type == types_.end()) return;
  type->second->is_blocked = false;
  accept_more(type->second);
}

// Does not need mutex_.
void Deliverer::wake(const TypePtr& type) {
  if (type->wakes.fetch_add(1) > 0) return;
  if (!pool_.submit([this, type] { poll(type); })) type->wakes = 0;
}

void Deliverer::poll(const TypePtr& type) {
  auto seen = type->wakes.load();
  do { poll_once(type); } while (!type->wakes.compare_exchange_strong(seen, 0));
}

void Deliverer::poll_once(const TypePtr& type) {
  std::shared_ptr<jobs::Acceptor::Waiter> waiter;
  {
    std::lock_guard lock(mutex_);
    waiter = type->waiter;
  }
  if (!waiter) return;
  jobs::Acceptor::Step step;
  try {
    step = acceptor_.step(waiter);
  } catch (const std::exception& error) {
    log::error("Cannot accept jobs of type {} for delivery; retrying in a second: {}", type->name,
               error.what());
    std::lock_guard lock(mutex_);
    if (type->waiter == waiter) type->waiter.reset();
    if (type->settings) set_timer(type, clock_.now() + kRetryInterval);
    return;
  }
  {
    std::lock_guard lock(mutex_);
    if (!step.done) {
      if (type->waiter == waiter) set_timer(type, step.poll_at);
      return;
    }
    if (type->waiter == waiter) type->waiter.reset();
    // The receiver may have failed since the waiter joined.
    const bool may_send = type->settings && !stopping_ && type->pacer.allowed(clock_.now()) > 0;
    if (may_send) {
      type->pacer.begin(step.jobs.size());
      for (auto& job : step.jobs) add(type, std::move(job));
      step.jobs.clear();
      send_next();
    }
    set_timer(type, MonotonicTime::max());
  }
  // Before the type waits for them again.
  if (!step.jobs.empty()) acceptor_.release_undelivered(step.jobs);
  std::lock_guard lock(mutex_);
  accept_more(type);
}

void Deliverer::add(const TypePtr& type, jobs::AcceptedJob job) {
  const auto number = ++last_number_;
  auto& delivery = deliveries_[number];
  delivery.number = number;
  delivery.type = type;
  delivery.settings = type->settings;
  delivery.request = make_request(job, *type->settings, clock_.wall_ms());
  delivery.job = std::move(job);
  auto& host = hosts_[delivery.settings->host];
  host.waiting.push_back(number);
  make_due(delivery.settings->host, host);
}

void Deliverer::make_due(const std::string& name, Host& host) {
  if (host.is_due || host.waiting.empty() || host.sending >= limits_.requests_of_host) return;
  host.is_due = true;
  (quick_hosts_.contains(name) ? quick_turns_ : other_turns_).push_back(name);
}

std::optional<std::string> Deliverer::next_host() {
  if (sending_ >= limits_.requests) return std::nullopt;
  const bool others_may = sending_other_ < std::max<std::size_t>(1, limits_.requests - limits_.requests / 4);
  if (quick_turns_.empty() && (other_turns_.empty() || !others_may)) return std::nullopt;
  auto& turns = quick_turns_.empty() ? other_turns_ : quick_turns_;
  auto name = std::move(turns.front());
  turns.pop_front();
  return name;
}

void Deliverer::send_next() {
  while (const auto name = next_host()) {
    auto& host = hosts_.at(*name);
    host.is_due = false;
    if (host.waiting.empty()) continue;
    auto& delivery = deliveries_.at(host.waiting.front());
    host.waiting.pop_front();
    ++host.sending;
    ++sending_;
    delivery.counts_as_other = !quick_hosts_.contains(*name);
    if (delivery.counts_as_other) ++sending_other_;
    make_due(*name, host);
    send(delivery);
  }
}

void Deliverer::send(Delivery& delivery) {
  auto options = limits_.http;
  options.connect_timeout = delivery.settings->timeout;
  options.max_response_bytes = delivery.settings->keeps_result ? kMaxResultBytes : kMaxShownBytes;
  const auto host = delivery.request.shown_url;
  if (!std::exchange(delivery.is_sent, true)) delivery.sent_at = clock_.now();
  if (options.proxy.empty()) {
    options.may_connect = [rules = limits_.rules, host](const sockaddr& address) {
      return rules->may_connect(host, address);
    };
  } else if (!limits_.rules->may_request(host)) {
    const Error refused(403, "address_not_allowed",
                        fmt::format("{}: Requests to this host are not allowed.", host));
    pool_.submit([this, number = delivery.number, error = std::make_exception_ptr(refused)] {
      on_response(number, {.error = error});
    });
    return;
  }
  delivery.pending = client_.send(delivery.request, options,
                                  [this, number = delivery.number](http_client::AsyncClient::Result result) {
                                    on_response(number, std::move(result));
                                  });
}

void Deliverer::on_response(std::uint64_t number, http_client::AsyncClient::Result result) {
  std::lock_guard lock(mutex_);
  const auto found = deliveries_.find(number);
  if (found == deliveries_.end()) return;  // it was ended by stop()
  if (!result.error && is_redirect(result.response.status)) {
    const auto host = found->second.request.shown_url;
    try {
      if (follow_redirect(found->second, result.response)) return;
    } catch (const Error& error) {
      result = {.error = std::make_exception_ptr(Error(
                    502, "bad_response", fmt::format("{}: Invalid redirect: {}", host, error.reason())))};
    }
  }
  const auto type = found->second.type;
  end(number, result);
  accept_more(type);
  accept_blocked();
  send_next();
  if (deliveries_.empty()) idle_.notify_all();
}

bool Deliverer::follow_redirect(Delivery& delivery, const http_client::Response& response) {
  if (response.location.empty() || delivery.redirects == kMaxRedirects) return false;
  if (stopping_) throw stopped();
  ++delivery.redirects;
  delivery.request = redirected(delivery.request, *delivery.settings, response.location);
  send(delivery);
  return true;
}

void Deliverer::end(std::uint64_t number, const http_client::AsyncClient::Result& result) {
  const auto now = clock_.now();
  auto& delivery = deliveries_.at(number);
  auto& type = *delivery.type;
  const auto& host_name = delivery.settings->host;
  Ended ended{delivery.job.attempt(), outcome_of(result, *delivery.settings, delivery.request.shown_url)};
  auto& outcome = ended.outcome;
  auto& host = hosts_.at(host_name);
  if (delivery.is_sent) {
    --host.sending;
    --sending_;
    if (delivery.counts_as_other) --sending_other_;
    const bool is_quick = !outcome.is_receiver_down && now - delivery.sent_at < kQuick;
    if (!is_quick) {
      quick_hosts_.erase(host_name);
    } else if (quick_hosts_.size() < kMaxQuickHosts) {
      quick_hosts_.insert(host_name);
    }
  } else {
    std::erase(host.waiting, number);
  }
  make_due(host_name, host);
  if (stopping_ && result.error) {
    // Another process sends it.
    outcome.kind = Outcome::Kind::wait;
    outcome.pause = {};
    type.pacer.drop();
  } else {
    type.pacer.end(outcome.is_receiver_down, now);
    if (outcome.kind == Outcome::Kind::wait) type.pacer.pause(outcome.pause, now);
    if (!outcome.error.empty()) type.last_error = outcome.error;
    const bool is_failure = outcome.kind == Outcome::Kind::fail || outcome.kind == Outcome::Kind::abandon;
    if (outcome.kind != Outcome::Kind::wait) ++(is_failure ? failed_ : delivered_);
  }
  leave(delivery.type);
  ended_.push_back(std::move(ended));
  if (host.sending == 0 && host.waiting.empty() && !host.is_due) hosts_.erase(host_name);
  deliveries_.erase(number);
  schedule_report();
}

// Accepts no jobs for a receiver that may not get them now.
void Deliverer::leave(const TypePtr& type) {
  const auto state = type->pacer.state(clock_.now());
  if (!type->waiter || state == Pacer::State::closed || state == Pacer::State::half_open) return;
  if (acceptor_.leave(type->waiter)) type->waiter.reset();
}

void Deliverer::schedule_report() {
  if (is_reporting_ || ended_.empty() || report_again_at_ != MonotonicTime::max()) return;
  is_reporting_ = pool_.submit([this] { report(); });
}

void Deliverer::report() {
  std::vector<Ended> some;
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      some.clear();
      std::size_t bytes = 0;
      std::size_t count = 0;
      while (count < std::min(ended_.size(), kReportedAtOnce) && bytes < kReportedBytes) {
        bytes += ended_[count].outcome.result.value_or("").size();
        some.push_back(std::move(ended_[count++]));
      }
      ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
      if (some.empty()) {
        is_reporting_ = false;
        return;
      }
    }
    try {
      report_some(some);
    } catch (const std::exception& error) {
      log::error("Cannot report on deliveries; retrying in a second: {}", error.what());
      std::lock_guard lock(mutex_);
      is_reporting_ = false;
      // At the end of the server its worker's jobs return to the queue.
      if (stopping_) return;
      ended_.insert(ended_.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
      report_again_at_ = clock_.now() + kRetryInterval;
      loop_.notify();
      return;
    }
  }
}

void Deliverer::report_some(const std::vector<Ended>& ended) {
  std::map<std::string_view, std::vector<std::string_view>> ids;
  for (const auto& each : ended) ids[each.attempt.type].push_back(each.attempt.id);
  store_.run([&](kv::Transaction& tx) {
    for (const auto& [type, of_type] : ids) jobs::QueueCore::prefetch(tx, type, of_type);
    for (const auto& [attempt, outcome] : ended) {
      try {
        switch (outcome.kind) {
          case Outcome::Kind::finish:
            jobs::finish(queue_, tx, attempt, std::nullopt, outcome.progress, outcome.result);
            break;
          case Outcome::Kind::detach: jobs::detach(queue_, tx, attempt, outcome.progress); break;
          case Outcome::Kind::fail: jobs::fail(queue_, tx, attempt, outcome.error); break;
          case Outcome::Kind::abandon:
            jobs::fail(queue_, tx, attempt, outcome.error, {.retry = false});
            break;
          case Outcome::Kind::wait:
            jobs::release(queue_, tx, attempt,
                          outcome.pause > Duration::zero() ? std::optional(outcome.pause) : std::nullopt);
            break;
        }
      } catch (const jobs::LockLost&) {
        // The receiver has ended the job itself, it was removed, or its deadline has passed.
      } catch (const Error& error) {
        log::error("Cannot report on the delivery of job {}/{}: {}", attempt.type, attempt.id,
                   error.reason());
      }
    }
  });
}

std::string Deliverer::status() const {
  std::lock_guard lock(mutex_);
  const auto now = clock_.now();
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("requests").number(sending_);
  writer.key("delivered").number(delivered_).key("failed").number(failed_);
  writer.key("types").begin_array();
  std::size_t shown = 0, left_off = 0;
  for (const auto& [name, type] : types_) {
    const auto state = type->pacer.state(now);
    if (state == Pacer::State::closed) continue;
    if (shown == kMaxShownTypes || out.size() > kMaxStatusBytes) {
      ++left_off;
      continue;
    }
    ++shown;
    writer.begin_object().key("type").string(name).key("state").string(state_name(state));
    writer.key("failures").number(type->pacer.failures()).key("retry_at");
    if (state == Pacer::State::half_open) {
      writer.null();
    } else {
      const auto left = std::chrono::ceil<milliseconds>(type->pacer.retry_at() - now);
      writer.number(clock_.wall_ms() + left.count());
    }
    writer.key("last_error").string(type->last_error).end_object();
  }
  writer.end_array().key("left_off").number(left_off).end_object();
  return out;
}

void Deliverer::measure(Metrics& metrics) const {
  const auto measure_count = [&](const char* name, const char* help, auto read) {
    metrics.measure(name, help, [this, read] {
      std::lock_guard lock(mutex_);
      return static_cast<double>(read());
    });
  };
  measure_count("divan_deliver_requests", "Requests under way that deliver jobs.",
                [this] { return sending_; });
  measure_count("divan_deliver_delivered_total", "Jobs that were delivered.", [this] { return delivered_; });
  measure_count("divan_deliver_failed_total", "Attempts to deliver jobs that have failed.",
                [this] { return failed_; });
}

}  // namespace divan::deliver
