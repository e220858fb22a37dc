#include "divan/app/server.h"

#include <fcntl.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "divan/api/index_waits.h"
#include "divan/api/service.h"
#include "divan/api/tail.h"
#include "divan/api/user_documents.h"
#include "divan/app/node.h"
#include "divan/app/node_load.h"
#include "divan/app/settings.h"
#include "divan/app/store.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/http/server.h"
#include "divan/index/builder.h"
#include "divan/index/serving_index.h"
#include "divan/index/views/view_index.h"
#include "divan/jobs/maintenance.h"
#include "divan/ken/lag.h"
#include "divan/kv/embedded/engine.h"
#include "divan/kv/fdb/engine.h"
#include "divan/updates/sequencer.h"

namespace divan::app {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

// Requests that have not ended this long after the server began to stop are aborted.
constexpr milliseconds kStopTimeout{2'000};
constexpr std::int64_t kMaxUpdatesDelay = 60'000;
// Maximum number of concurrent backups; the same number may wait. Each one holds a version of the store,
// whose overwritten rows remain until it ends.
constexpr std::size_t kMaxBackups = 4;
constexpr const char* kCommitsDescription = "Transactions committed.";
constexpr const char* kConflictsDescription = "Transactions rejected because of a conflict.";
constexpr const char* kDefaultAdmin = "admin";

// Writes a small secret file, synced and readable by its owner only.
void write_secret(const std::string& path, const std::string& line) {
  const std::string text = line + "\n";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const bool written = fd >= 0 &&
                       ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  if (fd >= 0) ::close(fd);
  if (!written) throw internal_error(fmt::format("Cannot write {}: {}", path, std::strerror(errno)));
}

std::string js_binary(const Config& config) {
  const std::string set = config.get("divan", "js_binary", "");
  if (!set.empty()) return set;
  return (fs::read_symlink("/proc/self/exe").parent_path() / "divan-js").string();
}

void add_admin(api::Accounts& accounts, const std::string& credentials) {
  const std::size_t colon = credentials.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == credentials.size()) {
    throw bad_request("The administrator has no password; expected NAME:PASSWORD.");
  }
  accounts.add_admin(credentials.substr(0, colon), credentials.substr(colon + 1));
}

js::ReduceLimit reduce_limit(const Config& config) {
  constexpr const char* kSection = "query_server_config";
  js::ReduceLimit limit;
  const std::string mode = config.get(kSection, "reduce_limit", "true");
  if (mode == "false") limit.mode = js::ReduceLimit::Mode::off;
  if (mode == "log") limit.mode = js::ReduceLimit::Mode::log;
  limit.threshold = static_cast<std::size_t>(config.get_int(
      kSection, "reduce_limit_threshold", static_cast<std::int64_t>(limit.threshold), 0, INT64_MAX));
  limit.ratio = config.get_number(kSection, "reduce_limit_ratio", limit.ratio, 0, 1e9);
  return limit;
}

js::PoolOptions pool_options(const Config& config) {
  js::PoolOptions options;
  options.binary = js_binary(config);
  options.processes = static_cast<std::size_t>(config.get_int("divan", "js_processes", 0, 0, INT64_MAX));
  options.memory =
      static_cast<std::size_t>(config.get_int("divan", "js_memory_bytes", 256 << 20, 0, INT64_MAX));
  options.invocation = milliseconds(config.get_int("couchdb", "os_process_timeout", 5000, 1, INT64_MAX));
  options.reduce_limit = reduce_limit(config);
  options.log_lines = static_cast<double>(config.get_int("divan", "js_log_lines", 10, 0, INT64_MAX));
  options.log = [](const js::Function& function, std::string_view line) {
    const auto& owner = function.owner;
    if (owner.design_document.empty()) {
      log::info("Function `{}`, while it is checked, logs: {}", function.name, line);
    } else {
      log::info("Function `{}` of `{}` in `{}` logs: {}", function.name, owner.design_document,
                owner.database, line);
    }
  };
  return options;
}

updates::SequencerOptions updates_options(const Config& config) {
  const auto delay = [&](const char* name) {
    return milliseconds(config.get_int("global_changes", name, 25, 0, kMaxUpdatesDelay));
  };
  return {.event_delay = delay("max_event_delay"),
          .write_delay = delay("max_write_delay"),
          .recording = config.get_bool("global_changes", "update_db", true)};
}

http::ServerOptions http_options(const Config& config) {
  http::ServerOptions options;
  options.address = config.get("chttpd", "bind_address", "127.0.0.1");
  options.port = static_cast<std::uint16_t>(config.get_int("chttpd", "port", 5984, 0, 65535));
  options.version = DIVAN_VERSION;
  options.max_body_bytes =
      static_cast<std::uint64_t>(config.get_int("chttpd", "max_http_request_size", 64 << 20, 0, INT64_MAX));
  options.max_connections =
      static_cast<std::size_t>(config.get_int("chttpd", "max_connections", 10'000, 1, INT64_MAX));
  options.max_header_bytes =
      static_cast<std::uint32_t>(config.get_int("chttpd", "max_header_size", 64 << 10, 1024, 1 << 20));
  const auto timeout = [&](const char* name, milliseconds& value) {
    value = milliseconds(config.get_int("chttpd", name, value.count(), 1, INT64_MAX));
  };
  timeout("idle_timeout", options.idle_timeout);
  timeout("head_timeout", options.head_timeout);
  timeout("body_timeout", options.body_timeout);
  timeout("send_timeout", options.send_timeout);
  timeout("half_close_timeout", options.half_close_timeout);
  options.stop_timeout = kStopTimeout;
  return options;
}

}  // namespace

std::string admin_file(const std::string& data_dir) { return data_dir + "/admin"; }

std::string unfinished_restore(const std::string& data_dir) { return data_dir + "/store.restoring"; }

void check_no_unfinished_restore(const std::string& data_dir) {
  std::error_code none;
  const auto unfinished = unfinished_restore(data_dir);
  if (!fs::exists(unfinished, none)) return;
  throw internal_error(fmt::format(
      "Data directory {}: a backup is being restored into it, or the restore was interrupted. If it was "
      "interrupted, remove {} and restore again.",
      data_dir, unfinished));
}

std::optional<std::string> read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || line.empty()) return std::nullopt;
  return line;
}

// Adds a metric whose value is computed when the metrics are read. If its name ends in `_total` it is a
// counter, whose value must not decrease; otherwise it is a gauge.
void measure(Metrics& metrics, const std::string& name, const char* help, std::function<double()> value) {
  if (name.ends_with("_total")) {
    auto& counter = metrics.counter(name, help);
    // The metrics may be read concurrently.
    metrics.on_collect([&counter, value = std::move(value), mutex = std::make_shared<std::mutex>()] {
      std::lock_guard lock(*mutex);
      counter.Increment(std::max(0.0, value() - counter.Value()));
    });
  } else {
    auto& gauge = metrics.gauge(name, help);
    metrics.on_collect([&gauge, value = std::move(value)] { gauge.Set(value()); });
  }
}

template <class T>
T* or_null(std::optional<T>& value) {
  return value ? &*value : nullptr;
}

struct Server::Parts {
  Config& config;
  const ServerSettings settings;
  SystemClock clock;
  SystemRng rng;
  Metrics metrics;
  api::Accounts accounts{rng, clock};
  std::string new_admin_file;
  std::string uuid;

  const std::string store_name = config.get("divan", "store", kEmbedded);
  const Node node;
  const std::string shared_name = is_shared(store_name) ? node.name() : "";  // among other nodes on the store
  const std::string node_name = shared_name.empty() ? "divan" : shared_name;
  const OpenStore opened;
  kv::Database& store = *opened.database;
  events::Bus bus;
  docs::Catalog catalog{bus, clock};
  workers::Registry registry{rng};
  jobs::Queue queue{registry, clock, rng};
  jobs::Acceptor acceptor{queue, store, clock};
  js::Pool js_pool;
  index::Kinds kinds;
  workers::Monitor monitor{store, registry, clock, rng};
  updates::Sequencer sequencer;
  backup::Restores restores{store, catalog, clock, rng};
  std::optional<jobs::Maintenance> maintenance;
  index::Meter index_meter{metrics};
  std::optional<index::Builder> builder;
  std::optional<ken::Ken> ken;
  api::IndexWaits index_waits;
  std::optional<ThreadPool> request_pool;
  std::optional<ThreadPool> backups;
  std::atomic<bool> stopping = false;
  std::atomic<std::uint64_t> requests = 0;
  std::optional<api::Tails> tails;
  std::optional<api::Service> service;
  std::optional<http::Server> http;
  // The same, for requests that arrive while it is being constructed.
  std::atomic<const http::Server*> listening = nullptr;
  NodeLoad load{clock};
  std::unique_ptr<workers::LocalWorker> member;  // this process as a node

  Parts(Config& the_config, const ServerSettings& the_settings)
      : config(the_config),
        settings(the_settings),
        node(prepared(settings.data_dir), rng),
        opened(open_store(store_name, settings.data_dir + "/store", config, clock, rng)),
        js_pool(pool_options(config), clock),
        sequencer(store, catalog, clock, updates_options(config), shared_name) {
    // Settings may change as long as there are requests, which stop() ends.
    config.on_change([this](const std::string& section, const std::string& key) {
      if (section == "global_changes") sequencer.configure(updates_options(config));
      if (section == "couchdb") use_max_document_size();
      if (section == "divan" || section == "couchdb" || section == "query_server_config")
        js_pool.configure(pool_options(config));
      if (section == "chttpd_auth" || section == "chttpd_auth_lockout") accounts.configure(config);
      if (section == "ken" && ken) ken->reconsider();
      if (section == "ken.ignore" && ken) ken->add(key);
    });
    accounts.configure(config);
    if (settings.listens) choose_admins();
    accounts.look_up_users([this](std::string_view name) { return api::find_user(store, catalog, name); });
    uuid = server_uuid(store, rng);
    kinds.push_back(std::make_unique<index::views::ViewKind>(js_pool));
    catalog.on_design_check(
        [this](std::string_view id, std::string_view body, const docs::Checkpoint& checkpoint) {
          for (const auto& kind : kinds) kind->check(std::string(id), body, checkpoint);
        });
    catalog.on_design_document([this](kv::Transaction& tx, const docs::Database& database,
                                      std::string_view id, std::string_view body) {
      index::retain_serving_index(tx, database, kinds, std::string(id), body);
    });
    use_max_document_size();
    if (settings.serves) api::create_users_database(store, catalog);
    queue.observer().measure(metrics);
    queue.observer().publish(bus);
    index::declare_builds(queue, store, kinds);
    if (shared_name.empty()) remove_dead_workers();
    monitor.start();
    sequencer.start();
    restores.start();
    start_background();
    collect_metrics();
    if (settings.listens) start_listening();
    announce();
  }

  void use_max_document_size() {
    constexpr auto kMost = static_cast<std::int64_t>(docs::kMaxDocumentBytes);
    catalog.set_max_document_bytes(
        static_cast<std::size_t>(config.get_int("couchdb", "max_document_size", kMost, 1, kMost)));
  }

  static const std::string& prepared(const std::string& data_dir) {
    std::error_code error;
    fs::create_directories(data_dir, error);
    if (error) throw internal_error(fmt::format("Data directory {}: {}", data_dir, error.message()));
    check_no_unfinished_restore(data_dir);
    return data_dir;
  }

  void choose_admins() {
    const auto sections = config.all();
    const auto admins = sections.find("admins");
    if (admins != sections.end()) {
      for (const auto& [name, password] : admins->second) accounts.add_admin(name, password);
    }
    if (!settings.admin.empty()) add_admin(accounts, settings.admin);
    if (admins != sections.end() || !settings.admin.empty()) return;
    // A password is always required: anonymous clients are never administrators.
    const std::string file = admin_file(settings.data_dir);
    auto credentials = read_line(file);
    if (!credentials) {
      credentials = fmt::format("{}:{}", kDefaultAdmin, rng.uuid());
      write_secret(file, *credentials);
      new_admin_file = file;
    }
    add_admin(accounts, *credentials);
  }

  // The store belongs to this process only: an earlier process that ran background work is dead, and its jobs
  // can be reclaimed at once.
  void remove_dead_workers() {
    const auto dead =
        store.run([&](kv::Transaction& tx) { return registry.members(tx, index::kBackgroundRole).workers; });
    for (const auto& worker : dead) {
      try {
        store.run([&](kv::Transaction& tx) { registry.remove_any(tx, index::kBackgroundRole, worker.id); });
      } catch (const std::exception& error) {
        log::error("Cannot remove worker {} of an earlier process: {}", worker.id, error.what());
      }
    }
  }

  void start_background() {
    const auto does = [this](std::string_view kind) {
      return std::find(settings.background.begin(), settings.background.end(), kind) !=
             settings.background.end();
    };
    if (does("jobs")) {
      maintenance.emplace(queue, store, clock);
      maintenance->start();
    }
    if (does("views")) {
      index::BuilderOptions options;
      options.threads = static_cast<std::size_t>(config.get_int("divan", "builders", 4, 1, INT64_MAX));
      options.meter = &index_meter;
      builder.emplace(store, catalog, queue, monitor, kinds, clock, options);
      builder->start(node_name);
    }
    if (does("ken")) {
      ken.emplace(store, catalog, queue, kinds, clock, rng, config,
                  ken::KenOptions{.builder = or_null(builder)});
      ken->start();
    }
  }

  void start_listening() {
    request_pool.emplace(
        "request", static_cast<std::size_t>(config.get_int("chttpd", "request_threads", 64, 1, INT64_MAX)),
        static_cast<std::size_t>(config.get_int("chttpd", "max_waiting_requests", 10'000, 1, INT64_MAX)));
    backups.emplace("backup", kMaxBackups, kMaxBackups);
    tails.emplace(bus);
    service.emplace(
        api::Context{store,        catalog,  queue,     acceptor, registry,      kinds,
                     clock,        rng,      config,    metrics,  accounts,      *request_pool,
                     stopping,     *backups, restores,  *tails,   index_waits,   or_null(builder),
                     or_null(ken), js_pool,  node_name, uuid,     DIVAN_VERSION, settings.serves});
    http.emplace(http_options(config), clock, [this](std::shared_ptr<http::Exchange> exchange) {
      ++requests;
      service->handle(std::move(exchange));
    });
    listening = &*http;
  }

  void announce() {
    std::string options;
    json::Writer writer(options);
    writer.begin_object().key("serves").boolean(settings.serves).key("address");
    settings.listens ? writer.string(url()) : writer.null();
    writer.key("version").string(DIVAN_VERSION);
    writer.key("started").number(clock.wall_ms()).key("background").begin_array();
    for (const auto& kind : settings.background) writer.string(kind);
    writer.end_array().end_object();
    member = monitor.add(workers::kNodeRole, node_name, options, workers::kDefaultTimeout, [this] {
      return load.report(with_process_use(
          {.javascript_seconds = std::chrono::duration<double>(js_pool.stats().busy_time).count(),
           .requests = requests,
           .builds = builder ? builder->running() : 0}));
    });
  }

  std::string url() const {
    if (!http) return {};
    const std::string address = config.get("chttpd", "bind_address", "127.0.0.1");
    const bool v6 = address.find(':') != std::string::npos;
    return fmt::format("http://{}:{}", v6 ? "[" + address + "]" : address, http->port());
  }

  void collect_metrics() {
    const auto shown = [this](const char* name, const char* help, std::function<double()> value) {
      measure(metrics, name, help, std::move(value));
    };
    const auto number = [](auto value) { return static_cast<double>(value); };
    if (opened.embedded != nullptr) collect_embedded();
    if (opened.fdb != nullptr) {
      shown("divan_store_round_trips_total", "Round trips to the cluster; concurrent ones count once.",
            [=, this] { return number(opened.fdb->round_trips()); });
      shown("divan_store_commits_total", kCommitsDescription,
            [=, this] { return number(opened.fdb->commits()); });
      shown("divan_store_conflicts_total", kConflictsDescription,
            [=, this] { return number(opened.fdb->conflicts()); });
    }
    shown("divan_http_connections", "Open connections.", [=, this] {
      const http::Server* server = listening;
      return server != nullptr ? number(server->connections()) : 0;
    });
    shown("divan_http_requests_total", "Requests received.", [=, this] { return number(requests.load()); });
    shown("divan_http_waiting_requests", "Requests waiting for a thread.",
          [=, this] { return request_pool ? number(request_pool->queued()) : 0; });
    shown("divan_password_checks_total", "Passwords compared with a hash.",
          [=, this] { return number(accounts.stats().right + accounts.stats().wrong); });
    shown("divan_password_failures_total", "Compared passwords that were wrong.",
          [=, this] { return number(accounts.stats().wrong); });
    shown("divan_password_refusals_total",
          "Requests whose passwords were not checked since too many were waiting.",
          [=, this] { return number(accounts.stats().refused); });
    shown("divan_password_checks_waiting", "Passwords waiting to be compared.",
          [=, this] { return number(accounts.stats().waiting); });
    shown("divan_js_processes", "JavaScript processes.", [=, this] { return number(js_pool.stats().alive); });
    shown("divan_js_processes_died_total", "JavaScript processes that ended or were killed.",
          [=, this] { return number(js_pool.stats().died); });
    shown("divan_js_failures_total", "Calls of JavaScript functions that failed.",
          [=, this] { return number(js_pool.stats().failures); });
    shown("divan_js_documents_total", "Documents mapped.",
          [=, this] { return number(js_pool.stats().documents); });
    shown("divan_js_busy_seconds_total", "Time during which JavaScript processes were busy.",
          [this] { return std::chrono::duration<double>(js_pool.stats().busy_time).count(); });
    shown("divan_events_published_total", "Events published to at least one subscriber.",
          [=, this] { return number(bus.stats().published); });
    shown("divan_events_delivered_total", "Deliveries of events to subscribers.",
          [=, this] { return number(bus.stats().delivered); });
    shown("divan_events_lagged_total", "Events missed by slow subscribers.",
          [=, this] { return number(bus.stats().lagged); });
    shown("divan_events_channels", "Channels with subscribers.",
          [=, this] { return number(bus.stats().channels); });
    shown("divan_events_subscribers", "Subscriptions to channels.",
          [=, this] { return number(bus.stats().subscribers); });
    shown("divan_feed_tails", "Ends of feeds that are read once for all followers.",
          [=, this] { return tails ? number(tails->stats().tails) : 0; });
    shown("divan_feed_store_reads_total", "Reads of the store for live feeds, shared or by a single feed.",
          [=, this] { return tails ? number(tails->stats().reads + tails->stats().own_reads) : 0; });
    collect_updates();
    if (ken) ken::measure(metrics, *ken, store, catalog);
    metrics.on_collect([this] { collect_jobs(); });
  }

  void collect_embedded() {
    const auto shown = [this](const char* name, const char* help, auto kv::embedded::CommitStats::*value) {
      measure(metrics, name, help,
              [this, value] { return static_cast<double>(opened.embedded->stats().*value); });
    };
    using Stats = kv::embedded::CommitStats;
    shown("divan_store_commits_total", kCommitsDescription, &Stats::commits);
    shown("divan_store_commit_groups_total", "Groups of commits, each one write of the log.", &Stats::groups);
    shown("divan_store_conflicts_total", kConflictsDescription, &Stats::conflicts);
    shown("divan_store_conflict_entries", "Keys stored for conflict checks.", &Stats::conflict_entries);
  }

  // The names are those of CouchDB's global_changes; docs/feeds.md describes what they count here.
  void collect_updates() {
    const auto shown = [this](const char* name, const char* help,
                              std::uint64_t updates::SequencerStats::*value) {
      measure(metrics, std::string("divan_global_changes_") + name, help,
              [this, value] { return static_cast<double>(sequencer.stats().*value); });
    };
    using Stats = updates::SequencerStats;
    shown("db_writes_total", "Rows written to the updates feed.", &Stats::rows);
    shown("server_pending_updates", "Marks of updates that were read and are not rows yet.", &Stats::pending);
    shown("listener_pending_updates", "Commits whose marks were not read yet.", &Stats::unseen);
    shown("rpcs_total", "Transactions of the updates feed.", &Stats::transactions);
    shown("conflicts_total", "Transactions of the updates feed that were retried.", &Stats::conflicts);
    shown("failures_total", "Failures after which the updates feed paused.", &Stats::failures);
    // The rows of the feed are not documents, so they have no conflicting revisions.
    metrics.counter("divan_global_changes_event_doc_conflict_total", "Always 0: rows have no revisions.");
  }

  void collect_jobs() {
    store.run([&](kv::Transaction& tx) {
      for (const auto& type : queue.types(tx)) {
        for (const auto& [state, count] : queue.counts(tx, type)) {
          metrics
              .gauge("divan_jobs", "Jobs by type and state.",
                     {{"type", type}, {"state", std::string(jobs::state_name(state))}})
              .Set(static_cast<double>(count));
        }
      }
    });
  }

  void stop() {
    // Requests first, since they use everything else. Waiting ones are dropped with their connections.
    member.reset();
    if (service) service->stop();
    // Functions of untrusted clients are not waited for. The builders must know why their calls end, and are
    // stopped first.
    if (builder) builder->stop();
    js_pool.stop();
    accounts.stop();
    if (http) http->stop();
    if (request_pool) request_pool->stop();
    if (tails) tails->stop();
    if (backups) backups->stop();
    ken.reset();
    builder.reset();
    maintenance.reset();
  }
};

Server::Server(Config& config, const ServerSettings& settings)
    : parts_(std::make_unique<Parts>(config, settings)) {}

Server::~Server() { stop(); }

std::string Server::url() const { return parts_->url(); }

const std::string& Server::new_admin_file() const { return parts_->new_admin_file; }

void Server::stop() { parts_->stop(); }

}  // namespace divan::app
