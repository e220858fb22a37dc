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
// How often the settings of types are read at most, and how often blocked types are tried.
constexpr Duration kMinRefreshInterval = milliseconds(100);
constexpr Duration kUnblockInterval = seconds(1);
// Blocked types that are tried when a request has ended.
constexpr std::size_t kUnblockedAtOnce = 50;
// Of the data of jobs in requests under way, approximately.
constexpr std::size_t kMaxBytes = 256 << 20;
constexpr int kMaxRedirects = 3;
// A type is fast if its last response came within this time.
constexpr Duration kFast = seconds(1);
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
  Speed speed = Speed::unknown;
  std::shared_ptr<jobs::Acceptor::Waiter> waiter{};
  MonotonicTime timer = MonotonicTime::max();
  bool is_blocked = false;  // in blocked_
  std::string last_error{};
  std::atomic<unsigned> wakes = 0;  // since its poll began; 0: none is to be made. Not protected.
};

// A request under way.
struct Deliverer::Delivery {
  std::uint64_t number = 0;
  TypePtr type{};
  jobs::Attempt attempt{};
  std::shared_ptr<const Settings> settings{};
  RequestSlots::Class slot_class{};
  std::uint64_t period = 0;  // Pacer::begin()
  std::size_t bytes = 0;
  std::string host{};  // of the last request
  int redirects = 0;
  MonotonicTime sent_at{}, ends_at{};
  std::unique_ptr<http_client::AsyncClient::Pending> pending{};
};

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
  const auto count = [this](const char* key, std::int64_t fallback) {
    return static_cast<std::size_t>(config_.get_int(kSection, key, fallback, 1, kMostRequests));
  };
  const RequestSlots::Limits limits{
      .requests = count(kMaxRequests, kDefaultMaxRequests),
      .requests_of_host = count(kMaxRequestsPerHost, kDefaultMaxRequestsPerHost),
      .bytes = kMaxBytes};
  const http_client::Options options{
      .memory = &response_memory_,
      .proxy = proxy_of(config_),
      .authorities_file = config_.get(kSection, "ssl_trusted_certificates_file", "")};
  auto rules = std::make_shared<const AddressRules>(address_rules(config_));
  std::lock_guard lock(mutex_);
  slots_.set_limits(limits);
  http_options_ = options;
  rules_ = std::move(rules);
  for (const auto& [name, type] : types_) {
    type->pacer.close();
    if (!type->waiter) set_timer(type, clock_.now());
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
    clock_.wait_until(lock, idle_, clock_.now() + kGrace, [this] { return deliveries_.empty(); });
    const http_client::AsyncClient::Result result{.error = std::make_exception_ptr(stopped())};
    while (!deliveries_.empty()) end(deliveries_.begin()->first, result);
  }
  lock.unlock();
  pool_.stop();
  worker_.reset();
}

MonotonicTime Deliverer::step() {
  const auto now = clock_.now();
  const auto has_changed = [this] { return types_have_changed_ || watched_types_.may_have_changed(); };
  if (now >= refresh_at_ || (now >= may_refresh_at_ && has_changed())) {
    refresh_at_ = now + kRefreshInterval;
    may_refresh_at_ = now + kMinRefreshInterval;
    refresh();
  }
  std::lock_guard lock(mutex_);
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto type = types_.at(timers_.begin()->second);
    set_timer(type, MonotonicTime::max());
    type->waiter ? wake(type) : accept_more(type);
  }
  if (unblock_at_ <= now) {
    unblock_at_ = MonotonicTime::max();
    accept_blocked(blocked_.size());
  }
  if (report_again_at_ <= now) {
    report_again_at_ = MonotonicTime::max();
    schedule_report();
  }
  const auto next = timers_.empty() ? MonotonicTime::max() : timers_.begin()->first;
  return std::min({next, report_again_at_, unblock_at_, has_changed() ? may_refresh_at_ : refresh_at_});
}

void Deliverer::refresh() {
  const auto nodes =
      store_.run([&](kv::Transaction& tx) { return queue_.registry().members(tx, kRole).workers.size(); });
  if (watched_types_.refresh(loop_.notifier())) types_have_changed_ = true;
  std::lock_guard lock(mutex_);
  if (const auto known = std::max<std::size_t>(1, nodes); known != nodes_) {
    nodes_ = known;
    for (const auto& [name, type] : types_) set_pace(*type);
  }
  if (!types_have_changed_) return;
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
  types_have_changed_ = false;
}

void Deliverer::update_type(const std::string& name, const std::string& json) {
  auto& type = types_[name];
  if (!type) type = std::make_shared<Type>(name);
  if (type->json == json) return;
  std::shared_ptr<const Settings> settings;
  try {
    settings = std::make_shared<const Settings>(parse_settings(json));
  } catch (const Error& error) { log::error("Jobs of type {} are not delivered: {}", name, error.reason()); }
  if (!settings) return remove_type(type);
  type->json = json;
  // It may be another receiver.
  if (!type->settings || type->settings->url != settings->url) type->speed = Speed::unknown;
  type->settings = std::move(settings);
  type->pacer.close();
  set_pace(*type);
  accept_more(type);
}

void Deliverer::set_pace(Type& type) {
  if (!type.settings) return;  // they are damaged
  Pacer::Limits limits{.concurrency = divided(type.settings->concurrency, nodes_)};
  if (type.settings->per_second) limits.per_second = *type.settings->per_second / static_cast<double>(nodes_);
  type.pacer.set_limits(limits, clock_.now());
}

// Its requests end as they began.
void Deliverer::remove_type(const TypePtr& type) {
  type->settings.reset();
  type->json.clear();
  set_timer(type, MonotonicTime::max());
  stop_waiting(type);
}

// By the pool, since the acceptor may wake others.
void Deliverer::stop_waiting(const TypePtr& type) {
  if (!type->waiter) return;
  pool_.submit([this, waiter = std::exchange(type->waiter, nullptr)] {
    acceptor_.release_undelivered(acceptor_.abandon(waiter));
  });
}

void Deliverer::set_timer(const TypePtr& type, MonotonicTime at) {
  if (type->timer != MonotonicTime::max()) timers_.erase({type->timer, type->name});
  type->timer = at;
  if (at == MonotonicTime::max()) return;
  timers_.emplace(at, type->name);
  if (timers_.begin()->second == type->name) loop_.notify();
}

RequestSlots::Free Deliverer::free_slots(Type& type) {
  auto found = slots_.free(type.settings->host, type.pacer.running(), type.speed);
  found.count = std::min({found.count, type.pacer.allowed(clock_.now()), jobs::kMaxAcceptLimit});
  return found;
}

void Deliverer::accept_more(const TypePtr& type) {
  if (stopping_ || !type->settings || type->waiter) return;
  const auto now = clock_.now();
  if (type->pacer.allowed(now) == 0) {
    if (const auto at = type->pacer.next_time(now)) set_timer(type, *at);
    return;
  }
  const auto count = free_slots(*type).count;
  if (count == 0) {
    if (!std::exchange(type->is_blocked, true)) blocked_.push_back(type->name);
    if (unblock_at_ == MonotonicTime::max()) {
      unblock_at_ = now + kUnblockInterval;
      loop_.notify();
    }
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

// Types that are still blocked come last.
void Deliverer::accept_blocked(std::size_t most) {
  for (auto left = std::min(most, blocked_.size()); left > 0; --left) {
    const auto name = std::move(blocked_.front());
    blocked_.pop_front();
    const auto type = types_.find(name);
    if (type == types_.end()) continue;
    type->second->is_blocked = false;
    accept_more(type->second);
  }
}

// With or without mutex_.
void Deliverer::wake(const TypePtr& type) {
  if (type->wakes.fetch_add(1) > 0) return;
  if (!pool_.submit([this, type] { poll(type); })) type->wakes = 0;
}

void Deliverer::poll(const TypePtr& type) {
  auto seen = type->wakes.load();
  do {
    // Jobs that were accepted and not sent.
    std::vector<jobs::AcceptedJob> unsent;
    try {
      poll_once(type, unsent);
    } catch (const std::exception& error) {
      log::error("Cannot deliver jobs of type {}; retrying in a second: {}", type->name, error.what());
      std::lock_guard lock(mutex_);
      stop_waiting(type);
      if (type->settings) set_timer(type, clock_.now() + kRetryInterval);
    }
    if (!unsent.empty()) acceptor_.release_undelivered(unsent);
    std::lock_guard lock(mutex_);
    if (type->timer == MonotonicTime::max()) accept_more(type);
  } while (!type->wakes.compare_exchange_strong(seen, 0));
}

// As they are in the store: a job that is added after a change of the settings is sent as they say. Null if
// it is not delivered any more.
std::shared_ptr<const Settings> Deliverer::present_settings(const TypePtr& type) {
  const auto stored = store_.run([&](kv::Transaction& tx) { return queue_.find_type(tx, type->name); });
  std::lock_guard lock(mutex_);
  if (!type->settings) return nullptr;
  if (!stored || stored->deliver.empty()) {
    remove_type(type);
  } else if (stored->deliver != type->json) {
    update_type(type->name, stored->deliver);
  }
  return type->settings;
}

void Deliverer::poll_once(const TypePtr& type, std::vector<jobs::AcceptedJob>& unsent) {
  std::shared_ptr<jobs::Acceptor::Waiter> waiter;
  std::shared_ptr<const Settings> settings;
  {
    std::lock_guard lock(mutex_);
    waiter = type->waiter;
    settings = type->settings;
  }
  if (!waiter || !settings) return;
  auto step = acceptor_.step(waiter);
  if (!step.done) {
    std::lock_guard lock(mutex_);
    if (type->waiter == waiter) set_timer(type, step.poll_at);
    return;
  }
  unsent = std::move(step.jobs);
  {
    std::lock_guard lock(mutex_);
    if (type->waiter == waiter) type->waiter.reset();
    set_timer(type, MonotonicTime::max());
  }
  if (!unsent.empty()) settings = present_settings(type);
  if (!settings) return;
  std::vector<http_client::Request> requests;
  for (auto& job : unsent) requests.push_back(make_request(job, *settings, clock_.wall_ms()));
  std::size_t sent = 0;
  std::lock_guard lock(mutex_);
  // There may be fewer slots than when the waiter joined, or the receiver has failed since.
  while (sent < unsent.size() && type->settings && !stopping_) {
    const auto free = free_slots(*type);
    if (free.count == 0) break;
    begin(type, free.slot_class, settings, unsent[sent], std::move(requests[sent]));
    ++sent;
  }
  unsent.erase(unsent.begin(), unsent.begin() + static_cast<std::ptrdiff_t>(sent));
}

void Deliverer::begin(const TypePtr& type, RequestSlots::Class slot_class,
                      const std::shared_ptr<const Settings>& settings, const jobs::AcceptedJob& job,
                      http_client::Request request) {
  const auto number = ++last_number_;
  const auto now = clock_.now();
  const auto bytes = request.body.size();
  auto& delivery = deliveries_[number];
  try {
    delivery.number = number;
    delivery.type = type;
    delivery.attempt = job.attempt();
    delivery.settings = settings;
    delivery.slot_class = slot_class;
    delivery.bytes = bytes;
    delivery.sent_at = now;
    delivery.ends_at = now + request.timeout;
    slots_.take(settings->host, slot_class, bytes);
    try {
      send(delivery, std::move(request));
    } catch (...) {
      slots_.give_back(settings->host, slot_class, bytes);
      throw;
    }
  } catch (...) {
    deliveries_.erase(number);
    throw;
  }
  delivery.period = type->pacer.begin();
}

// Replaces the request of the delivery. The response cannot come before mutex_ is unlocked.
void Deliverer::send(Delivery& delivery, http_client::Request request) {
  auto options = http_options_;
  options.connect_timeout = request.timeout;
  options.max_response_bytes = delivery.settings->keeps_result ? kMaxResultBytes : kMaxShownBytes;
  delivery.host = request.shown_url;
  if (options.proxy.empty()) {
    options.may_connect = [rules = rules_, host = delivery.host](const sockaddr& address) {
      return rules->may_connect(host, address);
    };
  } else if (!rules_->may_request(delivery.host)) {
    const Error refused(403, "address_not_allowed",
                        fmt::format("{}: Requests to this host are not allowed.", delivery.host));
    pool_.submit([this, number = delivery.number, error = std::make_exception_ptr(refused)] {
      on_response(number, {.error = error});
    });
    return;
  }
  delivery.pending = client_.send(std::move(request), options,
                                  [this, number = delivery.number](http_client::AsyncClient::Result result) {
                                    on_response(number, std::move(result));
                                  });
}

void Deliverer::on_response(std::uint64_t number, http_client::AsyncClient::Result result) {
  std::lock_guard lock(mutex_);
  const auto found = deliveries_.find(number);
  if (found == deliveries_.end()) return;  // it was ended by stop()
  if (!result.error && is_redirect(result.response.status)) {
    const auto host = found->second.host;
    try {
      if (follow_redirect(found->second, result)) return;
    } catch (const Error& error) {
      result.error = std::make_exception_ptr(
          Error(502, "bad_response", fmt::format("{}: Invalid redirect: {}", host, error.reason())));
    }
  }
  const auto type = found->second.type;
  end(number, result);
  accept_more(type);
  accept_blocked(kUnblockedAtOnce);
  if (deliveries_.empty()) idle_.notify_all();
}

bool Deliverer::follow_redirect(Delivery& delivery, http_client::AsyncClient::Result& result) {
  if (result.response.location.empty() || delivery.redirects == kMaxRedirects) return false;
  if (stopping_) throw stopped();
  const auto left = std::chrono::ceil<milliseconds>(delivery.ends_at - clock_.now());
  if (left <= milliseconds(0)) return false;
  ++delivery.redirects;
  auto next = redirected(std::move(result.request), *delivery.settings, result.response.location);
  next.timeout = left;
  send(delivery, std::move(next));
  return true;
}

void Deliverer::end(std::uint64_t number, const http_client::AsyncClient::Result& result) {
  const auto now = clock_.now();
  auto& delivery = deliveries_.at(number);
  auto& type = *delivery.type;
  Ended ended{std::move(delivery.attempt), outcome_of(result, *delivery.settings, delivery.host)};
  auto& outcome = ended.outcome;
  slots_.give_back(delivery.settings->host, delivery.slot_class, delivery.bytes);
  if (stopping_ && result.error) {
    // Another process sends it.
    outcome.kind = Outcome::Kind::release;
    outcome.pause = {};
    type.pacer.drop(delivery.period);
  } else {
    const bool is_fast = !outcome.is_receiver_down && now - delivery.sent_at < kFast;
    type.speed = is_fast ? Speed::fast : Speed::slow;
    type.pacer.end(delivery.period, outcome.is_receiver_down, now);
    if (outcome.kind == Outcome::Kind::release) type.pacer.pause(outcome.pause, now);
    if (!outcome.error.empty()) type.last_error = outcome.error;
    const bool is_failure =
        outcome.kind == Outcome::Kind::fail || outcome.kind == Outcome::Kind::fail_permanently;
    if (outcome.kind != Outcome::Kind::release) ++(is_failure ? failed_ : delivered_);
  }
  // A receiver that may not get jobs now accepts none.
  const auto state = type.pacer.state(now);
  if (state == Pacer::State::open || state == Pacer::State::paused) stop_waiting(delivery.type);
  deliveries_.erase(number);
  ended_.push_back(std::move(ended));
  schedule_report();
}

std::string Deliverer::status() const {
  std::lock_guard lock(mutex_);
  const auto now = clock_.now();
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("requests").number(deliveries_.size());
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
                [this] { return deliveries_.size(); });
  measure_count("divan_deliver_delivered_total", "Jobs that were delivered.", [this] { return delivered_; });
  measure_count("divan_deliver_failed_total", "Attempts to deliver jobs that have failed.",
                [this] { return failed_; });
}

}  // namespace divan::deliver
