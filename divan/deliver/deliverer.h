// Delivers the jobs of types with the setting `deliver`: accepts them, sends each as an HTTP request, and
// reports how it has ended.
//
// A type has a waiter in the process's acceptor as long as its receiver may get more requests (pacer.h). A
// few threads accept jobs and report; one sends all requests. So types and receivers that wait hold no
// thread.
//
// Jobs are accepted only as far as there are slots for their requests (request_slots.h); what is accepted
// beyond that, since several types waited for the same slots, returns to the queue.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "divan/base/config.h"
#include "divan/base/metrics.h"
#include "divan/base/mutex.h"
#include "divan/base/thread_pool.h"
#include "divan/base/worker_loop.h"
#include "divan/deliver/address_rules.h"
#include "divan/deliver/outcome.h"
#include "divan/deliver/pacer.h"
#include "divan/deliver/request_slots.h"
#include "divan/http_client/async_client.h"
#include "divan/jobs/acceptor.h"
#include "divan/jobs/watched_types.h"
#include "divan/workers/monitor.h"

namespace divan::deliver {

/// The role of the workers that deliver jobs; there is one in each process with the background work
/// `deliver`.
inline constexpr std::string_view kRole = "_deliver";

/// The section of the settings; the most requests of a process at a time, and those to one host.
inline constexpr const char* kSection = "deliver";
inline constexpr const char* kMaxRequests = "max_requests";
inline constexpr std::int64_t kDefaultMaxRequests = 1000;
inline constexpr const char* kMaxRequestsPerHost = "max_requests_per_host";
inline constexpr std::int64_t kDefaultMaxRequestsPerHost = 200;
inline constexpr std::int64_t kMostRequests = 10'000;

/// The rules in the settings. Throws bad_request if they are invalid.
AddressRules address_rules(const Config& config);
/// The proxy in the settings; empty: none. Throws bad_request if it is invalid.
std::string proxy_of(const Config& config);

/// Thread-safe. All arguments must outlive it.
class Deliverer {
 public:
  /// `acceptor`: that of the process, so that a job which a request adds is accepted in its commit.
  Deliverer(kv::Database& store, jobs::Queue& queue, jobs::Acceptor& acceptor, workers::Monitor& monitor,
            const Clock& clock, const Config& config);
  /// Calls stop().
  ~Deliverer();
  Deliverer(const Deliverer&) = delete;
  Deliverer& operator=(const Deliverer&) = delete;

  /// Registers as a worker and begins to accept jobs. Throws bad_request if a setting is invalid.
  void start(std::string_view worker_id);
  /// Accepts no more jobs, waits some seconds for the responses to requests, and returns the other jobs to
  /// the queue. Idempotent.
  void stop();

  /// The settings have changed. Throws bad_request if they are invalid; then nothing changes.
  void configure();

  /// What it does, as JSON for the load of its worker: docs/delivery.md.
  std::string status() const;

  void measure(Metrics& metrics) const;

 private:
  struct Type;
  using TypePtr = std::shared_ptr<Type>;
  struct Delivery;
  // What is left to do when a request has ended.
  struct Ended {
    jobs::Attempt attempt;
    Outcome outcome;
  };
  void wake(const TypePtr& type);

  MonotonicTime step();
  void refresh();
  void poll(const TypePtr& type);
  void poll_once(const TypePtr& type, std::vector<jobs::AcceptedJob>& unsent);
  std::shared_ptr<const Settings> present_settings(const TypePtr& type);
  void report();
  void report_some(const std::vector<Ended>& ended);
  void on_response(std::uint64_t number, http_client::AsyncClient::Result result);

  // With mutex_ locked:
  void update_type(const std::string& name, const std::string& json);
  void remove_type(const TypePtr& type);
  void set_pace(Type& type);
  void accept_more(const TypePtr& type);
  void accept_blocked(std::size_t most);
  void stop_waiting(const TypePtr& type);
  void set_timer(const TypePtr& type, MonotonicTime at);
  RequestSlots::Free free_slots(Type& type);
  void begin(const TypePtr& type, RequestSlots::Class slot_class,
             const std::shared_ptr<const Settings>& settings, const jobs::AcceptedJob& job,
             http_client::Request request);
  void send(Delivery& delivery, http_client::Request request);
  bool follow_redirect(Delivery& delivery, http_client::AsyncClient::Result& result);
  void end(std::uint64_t number, const http_client::AsyncClient::Result& result);
  void schedule_report();

  kv::Database& store_;
  jobs::Queue& queue_;
  jobs::Acceptor& acceptor_;
  workers::Monitor& monitor_;
  const Clock& clock_;
  const Config& config_;
  http_client::ResponseMemory response_memory_;

  jobs::WatchedTypes watched_types_;  // used by step() only, as the next two lines
  bool types_have_changed_ = false;   // since they were applied
  MonotonicTime refresh_at_{}, may_refresh_at_{};
  std::string worker_id_;
  std::unique_ptr<workers::LocalWorker> worker_;

  mutable Mutex mutex_{MutexRank::deliverer, "Deliverer::mutex_"};  // protects the members below
  ConditionVariable idle_;                                          // no request is under way
  http_client::Options http_options_;
  std::shared_ptr<const AddressRules> rules_;
  RequestSlots slots_;
  bool stopping_ = false;
  std::size_t nodes_ = 1;  // that deliver
  std::map<std::string, TypePtr> types_;
  std::set<std::pair<MonotonicTime, std::string>> timers_;
  std::deque<std::string> blocked_;  // types that may accept jobs when there are free slots
  MonotonicTime unblock_at_ = MonotonicTime::max();
  std::map<std::uint64_t, Delivery> deliveries_;  // requests under way
  std::uint64_t last_number_ = 0;
  std::vector<Ended> ended_;  // to be reported
  bool is_reporting_ = false;
  MonotonicTime report_again_at_ = MonotonicTime::max();
  std::uint64_t delivered_ = 0, failed_ = 0;

  ThreadPool pool_;
  http_client::AsyncClient client_;
  WorkerLoop loop_;  // calls step()
};

}  // namespace divan::deliver
