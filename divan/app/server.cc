#include "divan/app/server.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/api/function_threads.h"
#include "divan/api/history.h"
#include "divan/api/index_waits.h"
#include "divan/api/service.h"
#include "divan/api/static_files.h"
#include "divan/api/statistics.h"
#include "divan/api/streamed_body.h"
#include "divan/api/tail.h"
#include "divan/api/user_documents.h"
#include "divan/api/uuids.h"
#include "divan/api/validations.h"
#include "divan/app/admins.h"
#include "divan/app/data_directory.h"
#include "divan/app/embedded_files.h"
#include "divan/app/metrics.h"
#include "divan/app/node.h"
#include "divan/app/node_load.h"
#include "divan/app/options.h"
#include "divan/app/settings.h"
#include "divan/app/statistics.h"
#include "divan/app/store.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/compaction/compactor.h"
#include "divan/deliver/deliverer.h"
#include "divan/functions/validation_functions.h"
#include "divan/http/server.h"
#include "divan/index/builder.h"
#include "divan/index/geo/geo_kind.h"
#include "divan/index/search/search_kind.h"
#include "divan/index/serving_index.h"
#include "divan/index/triggers/state.h"
#include "divan/index/triggers/trigger_kind.h"
#include "divan/index/views/view_kind.h"
#include "divan/jobs/maintenance.h"
#include "divan/ken/lag.h"
#include "divan/purge/auto_purge.h"
#include "divan/replicator/document_processor.h"
#include "divan/replicator/replicator.h"

namespace divan::app {
namespace {

// Maximum number of concurrent backups; the same number may wait. Each one holds a version of the store,
// whose overwritten rows remain until it ends.
constexpr std::size_t kMaxBackups = 4;

template <class T>
T* or_null(std::optional<T>& value) {
  return value ? &*value : nullptr;
}

}  // namespace

struct Server::Parts {
  Config& config;
  const ServerSettings settings;
  const api::NodeControl control;
  SystemClock clock;
  SystemRng rng;
  api::Uuids uuids{rng, clock};
  Metrics metrics;
  api::Statistics statistics{clock};
  const MonotonicTime began = clock.now();
  api::Accounts accounts{rng, clock};
  std::string new_admin_file;
  std::string uuid;

  const std::string store_name = config.get("divan", "store", kEmbedded);
  const Node node;
  const std::string shared_name = is_shared(store_name) ? node.name() : "";  // unique among the store's nodes
  const std::string node_name = shared_name.empty() ? "divan" : shared_name;
  const OpenStore opened;
  kv::Database& store = *opened.database;
  events::Bus bus;
  docs::Catalog catalog{bus, clock};
  workers::Registry registry{rng};
  jobs::Queue queue{registry, clock, rng};
  jobs::Acceptor acceptor{queue, store, clock};
  js::Pool js_pool;
  index::Kinds kinds;                       // all
  index::Kinds index_kinds, trigger_kinds;  // the others, and triggers
  workers::Monitor monitor{store, registry, clock, rng};
  updates::Sequencer sequencer;
  backup::Restores restores{store, catalog, clock, rng};
  docs::Uploads uploads{store, catalog, clock, rng};
  api::BodyMemory body_memory{api::kBodyMemory, MutexRank::requests};
  std::optional<jobs::Maintenance> maintenance;
  index::Meter index_meter{metrics};
  std::optional<index::Builder> builder;
  std::optional<replicator::Replicator> replicator;
  std::optional<replicator::DocumentProcessor> replication_documents;
  std::optional<ken::Ken> ken;
  // Triggers run before and beside builds of indexes, with threads of their own.
  Config trigger_settings;
  std::optional<index::Builder> trigger_builder;
  std::optional<ken::Ken> triggers;
  std::optional<deliver::Deliverer> deliverer;
  std::optional<purge::AutoPurge> auto_purge;
  compaction::Compactor compactor{store, catalog, clock, config, does("compaction")};
  api::IndexWaits index_waits;
  std::optional<api::StaticFiles> web_files;
  api::StaticFiles openapi{openapi_files()};
  api::History history{clock, [this] { return queue.job_metrics().counts(); }};
  std::optional<ThreadPool> request_pool;
  std::optional<ThreadPool> backups;
  std::atomic<bool> stopping = false;
  std::optional<api::FunctionThreads> function_threads;
  std::optional<api::Validations> validations;
  std::optional<api::Tails> tails;
  std::optional<api::Service> service;
  std::optional<http::Server> http;
  // The same, for requests that arrive while it is being constructed.
  std::atomic<const http::Server*> listening = nullptr;
  NodeLoad load{clock};
  std::unique_ptr<workers::LocalWorker> member;  // this process as a node

  Parts(Config& the_config, const ServerSettings& the_settings, const api::NodeControl& the_control)
      : config(the_config),
        settings(the_settings),
        control(the_control),
        node(prepare_data_directory(settings.data_dir), rng),
        opened(open_store(store_name, settings.data_dir + "/store", config, clock, rng)),
        js_pool(pool_options(config), clock),
        sequencer(store, catalog, clock, updates_options(config), shared_name) {
    // Settings may change as long as there are requests, which stop() ends.
    config.on_change([this](const std::string& section, const std::string& key) {
      if (section == "global_changes") sequencer.configure(updates_options(config));
      if (section == "couchdb" || section == "attachments") use_document_settings();
      if (section == "divan" || section == "couchdb" || section == "query_server_config")
        js_pool.configure(pool_options(config));
      if (section == "chttpd_auth" || section == "chttpd_auth_lockout") accounts.configure(config);
      if (section == "uuids") uuids.configure(config);
      if (section == "ken" && ken) ken->reconsider();
      if (section == "ken.ignore" && ken) ken->add(key);
      if (section == deliver::kSection && deliverer) deliverer->configure();
      if (section == purge::kAutoPurgeSection && auto_purge) auto_purge->reconsider();
    });
    uuids.configure(config);
    accounts.configure(config);
    accounts.configure_identities(config);
    if (settings.listens)
      new_admin_file = choose_admins(accounts, config, rng, settings.data_dir, settings.admin);
    uuid = server_uuid(store, rng);
    accounts.set_session_secret(session_secret(store, rng));
    index_kinds = {std::make_shared<index::views::ViewKind>(js_pool),
                   std::make_shared<index::search::SearchKind>(js_pool),
                   std::make_shared<index::geo::GeoKind>(js_pool)};
    trigger_kinds = {
        std::make_shared<index::triggers::TriggerKind>(index::triggers::Jobs{queue, &acceptor}, js_pool)};
    kinds = index_kinds;
    kinds.insert(kinds.end(), trigger_kinds.begin(), trigger_kinds.end());
    catalog.on_design_check(
        [this](std::string_view id, std::string_view body, const docs::Checkpoint& checkpoint) {
          for (const auto& kind : kinds) kind->check(std::string(id), body, checkpoint);
          functions::check_validation(js_pool, std::string(id), body);
        });
    catalog.on_design_document([this](kv::Transaction& tx, const docs::Database& database,
                                      std::string_view id, std::string_view body) {
      index::retain_serving_index(tx, database, kinds, std::string(id), body);
    });
    catalog.on_design_winner(index::triggers::update_triggers);
    use_document_settings();
    replicator::mark_changed_databases(catalog);
    if (settings.serves) api::create_users_database(store, catalog);
    queue.job_metrics().measure(metrics);
    queue.job_metrics().publish(bus);
    index::declare_builds(queue, store, kinds);
    replicator::declare_replications(queue, store);
    if (shared_name.empty()) remove_dead_workers();
    monitor.start();
    sequencer.start();
    restores.start();
    uploads.start();
    start_background();
    collect_metrics();
    if (settings.listens) start_listening();
    announce();
  }

  void use_document_settings() {
    constexpr auto kMost = static_cast<std::int64_t>(docs::kMaxDocumentBytes);
    catalog.set_max_document_bytes(
        static_cast<std::size_t>(config.get_int("couchdb", "max_document_size", kMost, 1, kMost)));
    const bool no_limit = config.get("couchdb", "max_attachment_size") == "infinity";
    catalog.set_max_attachment_bytes(
        no_limit ? UINT64_MAX
                 : static_cast<std::uint64_t>(config.get_int(
                       "couchdb", "max_attachment_size", docs::kDefaultMaxAttachmentBytes, 1, INT64_MAX)));
    catalog.set_compression(compression_of(config));
    catalog.set_max_old_revisions(static_cast<std::size_t>(config.get_int(
        "couchdb", "max_old_revisions", docs::kDefaultMaxOldRevisions, 0, docs::kMaxOldRevisions)));
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

  bool does(std::string_view kind) const {
    return std::find(settings.background.begin(), settings.background.end(), kind) !=
           settings.background.end();
  }

  void start_background() {
    if (does("jobs")) {
      maintenance.emplace(queue, store, clock);
      maintenance->start();
    }
    if (does("views")) {
      index::BuilderOptions options;
      options.threads = static_cast<std::size_t>(config.get_int("divan", "builders", 4, 1, INT64_MAX));
      options.meter = &index_meter;
      builder.emplace(store, catalog, queue, monitor, index_kinds, clock, options);
      builder->start(node_name);
    }
    if (does("ken")) {
      ken.emplace(store, catalog, queue, index_kinds, clock, rng, config,
                  ken::KenOptions{.builder = or_null(builder)});
      ken->start();
    }
    if (does("triggers")) start_triggers();
    if (does("deliver")) {
      deliverer.emplace(store, queue, acceptor, monitor, clock, config);
      deliverer->measure(metrics);
      deliverer->start(node_name);
    }
    if (does("purge")) {
      auto_purge.emplace(store, catalog, clock, config);
      auto_purge->start();
    }
    compactor.start();
    if (does("replicator")) {
      const auto prepare = [this](const std::string& database, docs::IncomingDocument& document) {
        if (database == docs::kUsersDatabase)
          api::prepare_user_document(document, api::password_iterations(config), rng);
      };
      replicator.emplace(
          replicator::LocalStore{store, catalog, uploads, js_pool, clock, !shared_name.empty(), prepare},
          queue, monitor, rng, config);
      replicator->start(node_name);
      replication_documents.emplace(store, catalog, queue, clock, uuid,
                                    [this](const std::string& id) { replicator->interrupt(id); });
      replication_documents->start();
    }
  }

  void start_triggers() {
    trigger_settings.override_with("ken", "delay", "0");
    trigger_settings.override_with("ken", "limit", "1000");
    trigger_builder.emplace(store, catalog, queue, monitor, trigger_kinds, clock,
                            index::BuilderOptions{.wait_for_changes = std::chrono::milliseconds(20)});
    trigger_builder->start(node_name + "-triggers");
    triggers.emplace(store, catalog, queue, trigger_kinds, clock, rng, trigger_settings,
                     ken::KenOptions{.gather = {}, .builder = &*trigger_builder});
    triggers->start();
  }

  void start_listening() {
    if (const auto folder = config.get("divan", "fauxton", ""); !folder.empty()) {
      web_files.emplace(folder);
    } else if (!dashboard_files().empty()) {
      web_files.emplace(dashboard_files());
    }
    request_pool.emplace(
        "request", static_cast<std::size_t>(config.get_int("chttpd", "request_threads", 64, 1, INT64_MAX)),
        static_cast<std::size_t>(config.get_int("chttpd", "max_waiting_requests", 10'000, 1, INT64_MAX)));
    backups.emplace("backup", kMaxBackups, kMaxBackups);
    function_threads.emplace(js_pool.processes() + 2);
    validations.emplace(js_pool, *function_threads);
    tails.emplace(bus, *function_threads);
    service.emplace(api::Context{.store = store,
                                 .catalog = catalog,
                                 .queue = queue,
                                 .acceptor = acceptor,
                                 .registry = registry,
                                 .kinds = kinds,
                                 .clock = clock,
                                 .rng = rng,
                                 .uuids = uuids,
                                 .config = config,
                                 .metrics = metrics,
                                 .accounts = accounts,
                                 .pool = *request_pool,
                                 .stopping = stopping,
                                 .backups = *backups,
                                 .restores = restores,
                                 .uploads = uploads,
                                 .compactor = compactor,
                                 .body_memory = body_memory,
                                 .tails = *tails,
                                 .index_waits = index_waits,
                                 .builder = or_null(builder),
                                 .ken = or_null(ken),
                                 .js_pool = js_pool,
                                 .function_threads = *function_threads,
                                 .validations = *validations,
                                 .node = node_name,
                                 .server_uuid = uuid,
                                 .version = DIVAN_VERSION,
                                 .javascript_version = DIVAN_SPIDERMONKEY_VERSION,
                                 .replicator = or_null(replicator),
                                 .triggers = or_null(triggers),
                                 .statistics = &statistics,
                                 .node_control = {.restart = control.restart,
                                                  .reload_settings = control.reload_settings,
                                                  .read_use = [this] { return use(); },
                                                  .describe_settings = settings_json},
                                 .monitor = &monitor,
                                 .history = &history,
                                 .web_files = or_null(web_files),
                                 .openapi = &openapi,
                                 .is_shared = !shared_name.empty(),
                                 .serves = settings.serves});
    http.emplace(http_options(config), clock, [this](const std::shared_ptr<http::Exchange>& exchange) {
      statistics.observe(*exchange);
      service->handle(exchange);
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
           .requests = statistics.requests(),
           .builds = builder ? builder->running() : 0,
           .disk = disk_space(settings.data_dir)}));
    });
  }

  api::NodeUse use() const { return node_use(clock.now() - began, settings.data_dir); }

  std::string url(std::string_view scheme, std::uint16_t port) const {
    const std::string address = config.get("chttpd", "bind_address", "127.0.0.1");
    const bool v6 = address.find(':') != std::string::npos;
    return fmt::format("{}://{}:{}", scheme, v6 ? "[" + address + "]" : address, port);
  }
  std::string url() const { return http ? url("http", http->port()) : ""; }
  std::string tls_url() const { return http && http->tls_port() != 0 ? url("https", http->tls_port()) : ""; }

  void collect_metrics() {
    measure_store(metrics, opened);
    metrics.measure("divan_disk_total_bytes", "Size of the file system that has the data directory.",
                    [this] { return static_cast<double>(disk_space(settings.data_dir).total_bytes); });
    metrics.measure("divan_disk_free_bytes", "Free space of the file system that has the data directory.",
                    [this] { return static_cast<double>(disk_space(settings.data_dir).free_bytes); });
    metrics.measure("divan_http_connections", "Open connections.", [this] {
      const http::Server* server = listening;
      return server != nullptr ? static_cast<double>(server->connections()) : 0;
    });
    metrics.measure("divan_http_requests_total", "Requests received.",
                    [this] { return static_cast<double>(statistics.requests()); });
    metrics.measure("divan_http_waiting_requests", "Requests waiting for a thread.",
                    [this] { return request_pool ? static_cast<double>(request_pool->queued()) : 0; });
    measure_passwords(metrics, accounts);
    measure_js(metrics, js_pool);
    measure_events(metrics, bus);
    metrics.measure("divan_feed_tails", "Ends of feeds that are read once for all followers.",
                    [this] { return tails ? static_cast<double>(tails->stats().tails) : 0; });
    metrics.measure(
        "divan_feed_store_reads_total", "Reads of the store for live feeds, shared or by a single feed.",
        [this] { return tails ? static_cast<double>(tails->stats().reads + tails->stats().own_reads) : 0; });
    measure_updates(metrics, sequencer);
    if (ken) ken::measure(metrics, *ken, store, catalog);
    measure_jobs(metrics, store, queue);
    add_store_statistics(statistics, opened);
    add_process_statistics(statistics);
    add_password_statistics(statistics, accounts);
    add_js_statistics(statistics, js_pool);
    add_updates_statistics(statistics, sequencer);
    add_document_statistics(statistics, catalog);
    keep_history();
  }

  // What the dashboard's charts show.
  void keep_history() {
    using Kind = api::History::Kind;
    history.add("requests", Kind::counter, [this] { return static_cast<double>(statistics.requests()); });
    history.add("documents_written", Kind::counter,
                [this] { return static_cast<double>(catalog.documents_written()); });
    history.add("cpu_cores", Kind::counter, [] { return with_process_use({}).cpu_seconds; });
    history.add("javascript_processes", Kind::counter,
                [this] { return std::chrono::duration<double>(js_pool.stats().busy_time).count(); });
    history.add("memory_bytes", Kind::gauge,
                [] { return static_cast<double>(with_process_use({}).memory_bytes); });
    history.start();
  }

  void stop() {
    // Requests first, since they use everything else. Waiting ones are dropped with their connections.
    member.reset();
    if (service) service->stop();
    // Running JavaScript functions are not waited for. The builders are stopped first, so that they know why
    // their calls end.
    if (builder) builder->stop();
    if (trigger_builder) trigger_builder->stop();
    if (replication_documents) replication_documents->stop();
    if (replicator) replicator->stop();
    js_pool.stop();
    accounts.stop();
    if (http) http->stop();
    if (service) service->wait_for_requests();
    if (function_threads) function_threads->stop();
    if (request_pool) request_pool->stop();
    if (tails) tails->stop();
    if (backups) backups->stop();
    deliverer.reset();
    auto_purge.reset();
    compactor.stop();
    replication_documents.reset();
    replicator.reset();
    ken.reset();
    builder.reset();
    triggers.reset();
    trigger_builder.reset();
    maintenance.reset();
  }
};

Server::Server(Config& config, const ServerSettings& settings, const api::NodeControl& control)
    : parts_(std::make_unique<Parts>(config, settings, control)) {}

Server::~Server() { stop(); }

std::string Server::url() const { return parts_->url(); }

std::string Server::tls_url() const { return parts_->tls_url(); }

const std::string& Server::new_admin_file() const { return parts_->new_admin_file; }

bool Server::responds(std::chrono::milliseconds timeout) const {
  return !parts_->http || parts_->http->responds(timeout);
}

void Server::stop() { parts_->stop(); }

}  // namespace divan::app
