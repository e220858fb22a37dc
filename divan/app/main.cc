// divan: the server and its tools.
#include <absl/cleanup/cleanup.h>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "divan/app/backup.h"
#include "divan/app/command_line.h"
#include "divan/app/generate.h"
#include "divan/app/inspect.h"
#include "divan/app/jobs_commands.h"
#include "divan/app/load.h"
#include "divan/app/near.h"
#include "divan/app/search.h"
#include "divan/app/serve.h"
#include "divan/app/settings.h"
#include "divan/app/store.h"
#include "divan/app/table.h"
#include "divan/app/triggers.h"
#include "divan/app/verify.h"
#include "divan/app/workers_commands.h"
#include "divan/base/error.h"
#include "divan/kv/fdb/client.h"

// jemalloc's settings (its manual, "TUNING"): freed memory is returned to the system after one second instead
// of ten, since loads and builds come in bursts, and other processes can use it.
extern "C" {
const char* malloc_conf = "background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0";
}

namespace {

using namespace divan::app;

struct CommandLine {
  ServeOptions serve;
  std::string bind, port;
  bool no_background = false;
  LoadOptions load;
  BackupOptions backup;
  RestoreOptions restore;
  VerifyOptions verify;
  NearOptions near;
  SearchOptions search;
  TriggersOptions triggers;
  QueryOptions inspect;
  bool follow = false;
};

// Adds the common options of `serve` and `worker`; returns the option of the kinds of background work.
CLI::Option* add_process(CLI::App& command, CommandLine& line) {
  command.add_option("--data-dir", line.serve.server.data_dir, "Data directory; created if missing")
      ->type_name("DIR")
      ->capture_default_str();
  command.add_option("--bind", line.bind, "Address to listen on (127.0.0.1)");
  command.add_option("--port", line.port, "Port to listen on (5984)");
  command.add_option("--config", line.serve.config_file, "Settings file (ini)")->type_name("FILE");
  command.add_option("--store", line.serve.store, std::string("The store: ") + kStoreDescription);
  command.add_option("--admin", line.serve.server.admin, "NAME:PASSWORD of the administrator");
  command.footer(
      "Settings ([section] key = default), from --config, DATA-DIR/local.ini and DIVAN_SECTION_KEY:\n" +
      describe_settings());
  auto* background = command.add_option(
      "--background", line.serve.server.background,
      "Background work of this process; all kinds: " + fmt::format("{}", fmt::join(kBackgroundKinds, ",")));
  return background->delimiter(',')->check(CLI::IsMember(kBackgroundKinds))->option_text("KINDS");
}

CLI::App* add_serve(CLI::App& app, CommandLine& line) {
  auto* serve = app.add_subcommand("serve", "Run the server");
  auto* background = add_process(*serve, line);
  serve
      ->add_option("--durability", line.serve.durability,
                   "full, or relaxed: commits are faster but may be lost in a power failure")
      ->check(CLI::IsMember({"full", "relaxed"}));
  serve->add_option("--fauxton", line.serve.fauxton, "Folder of Fauxton's files, to be served at /_utils")
      ->type_name("DIR");
  serve->add_flag("--no-background", line.no_background, "No background work")->excludes(background);
  return serve;
}

CLI::App* add_worker(CLI::App& app, CommandLine& line) {
  auto* worker = app.add_subcommand("worker", "Run background work on a shared store, without serving");
  add_process(*worker, line);
  const auto describe = [&](const char* option, const char* description) {
    worker->get_option(option)->description(description);
  };
  describe("--data-dir", "Directory of this node's name and settings; created if missing");
  describe("--store", "The shared store, fdb:CLUSTER_FILE; fdb: is FoundationDB's default file");
  describe("--bind",
           "Listen on this address (127.0.0.1), for /_up and /_node/_local/... only; "
           "without --bind and --port the worker does not listen");
  describe("--port", "Listen on this port (5984), like --bind");
  describe("--admin", "NAME:PASSWORD of the administrator, for /_node");
  return worker;
}

int run_process(CommandLine& line) {
  if (!line.bind.empty()) line.serve.chttpd.emplace_back("bind_address", line.bind);
  if (!line.port.empty()) line.serve.chttpd.emplace_back("port", line.port);
  auto& background = line.serve.server.background;
  if (line.no_background) background.clear();
  std::sort(background.begin(), background.end());
  background.erase(std::unique(background.begin(), background.end()), background.end());
  return serve(line.serve, ::environ);
}

CLI::App* add_load(CLI::App& app, CommandLine& line) {
  auto* load = app.add_subcommand("load", "Load documents from JSON lines into a database");
  load->add_option("DATABASE", line.load.database, "Created if missing")->required();
  load->add_option("FILE", line.load.file, "JSON lines; - is standard input")->capture_default_str();
  load->add_option("--batch", line.load.batch, "Documents per request")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  load->add_option("--connections", line.load.connections, "Concurrent requests")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  load->add_flag("--quiet", line.load.quiet, "No progress bar");
  load->footer(
      "A rejected document (its JSON or id is invalid, it conflicts, it is too large) is left out and "
      "shown with its line;\nall others are loaded. The exit status is 0 if none was left out.");
  add_connection(*load, line.load.connection);
  return load;
}

CLI::App* add_backup(CLI::App& app, CommandLine& line) {
  auto* backup = app.add_subcommand("backup", "Write all data of a running server to a file");
  backup->add_option("FILE", line.backup.file, "Must not exist; - is standard output")->required();
  backup->add_flag("--quiet", line.backup.quiet, "No progress bar");
  backup
      ->add_option("--store", line.backup.store,
                   "Read this shared store, fdb:CLUSTER_FILE, instead of a server's")
      ->type_name("STORE");
  add_connection(*backup, line.backup.connection);
  return backup;
}

CLI::App* add_restore(CLI::App& app, CommandLine& line) {
  auto* restore = app.add_subcommand(
      "restore", "Create a data directory, or databases of a running server, from a backup");
  restore->add_option("FILE", line.restore.file, "The backup")->required();
  restore->add_option("--database", line.restore.databases, "Restore only this database (can be repeated)");
  restore->add_option("--as", line.restore.as, "New name of the only --database");
  restore->add_flag("--quiet", line.restore.quiet, "No progress bar");
  add_connection(*restore, line.restore.connection);
  restore->footer(
      "With --data-dir DIR: creates the data directory DIR from the whole backup; no server is needed. "
      "With --store fdb:FILE: fills an empty store in a cluster.\n"
      "Otherwise: creates the backup's databases in the running server, which must not have databases of "
      "these names;\nits jobs are not changed.");
  restore->add_option("--store", line.restore.store, "The empty shared store, fdb:CLUSTER_FILE, to fill")
      ->type_name("STORE")
      ->excludes("--url")
      ->excludes("--data-dir");
  restore->get_option("--data-dir")
      ->description("The new data directory")
      ->default_str("")
      ->excludes("--url");
  return restore;
}

CLI::App* add_verify(CLI::App& app, CommandLine& line) {
  auto* verify = app.add_subcommand("verify", "Check a data directory or shared store that no server uses");
  auto* directory =
      verify->add_option("DIR", line.verify.data_dir, "The data directory, which is not modified");
  verify->add_option("--store", line.verify.store, "The shared store, fdb:CLUSTER_FILE")
      ->type_name("STORE")
      ->excludes(directory);
  verify->add_flag("--json", line.verify.json, "Print the findings as JSON");
  verify->add_flag("--quiet", line.verify.quiet, "No progress bar");
  return verify;
}

CLI::App* add_near(CLI::App& app, CommandLine& line) {
  auto* near =
      app.add_subcommand("near", "Show the documents of a spatial index that are nearest to a place");
  near->add_option("DATABASE", line.near.database, "The database")->required();
  near->add_option("INDEX", line.near.index, "Design document and index: DESIGN/INDEX")->required();
  near->add_option("--at", line.near.at, "The place: LATITUDE,LONGITUDE, in degrees")->required();
  near->add_option("--radius", line.near.radius, "Only documents within so many metres");
  near->add_option("--limit", line.near.limit, "Number of documents, at most 200")->capture_default_str();
  add_query(*near, line.near.query);
  return near;
}

CLI::App* add_search(CLI::App& app, CommandLine& line) {
  auto* search = app.add_subcommand("search", "Show the documents that a full-text index finds");
  search->add_option("DATABASE", line.search.database, "The database")->required();
  search->add_option("INDEX", line.search.index, "Design document and index: DESIGN/INDEX")->required();
  search->add_option("QUERY", line.search.text, "The search, in Lucene's syntax: \"two words\" OR title:on*")
      ->required();
  search->add_option("--sort", line.search.sort, "Sort field, such as -price or name<string>, or JSON");
  search->add_option("--limit", line.search.limit, "Number of documents, at most 200")->capture_default_str();
  add_query(*search, line.search.query);
  return search;
}

CLI::App* add_triggers(CLI::App& app, CommandLine& line) {
  auto* triggers = app.add_subcommand("triggers", "Show the triggers of a database, and why they wait");
  triggers->add_option("DATABASE", line.triggers.database, "The database")->required();
  add_query(*triggers, line.triggers.query);
  return triggers;
}

// If the program is started without standard input, output or error, their descriptors would be assigned to
// the next files and connections, and output would be written into those. This opens /dev/null instead, so
// that writes fail.
void open_standard_files() {
  for (int fd = ::open("/dev/null", O_RDONLY); fd >= 0; fd = ::open("/dev/null", O_RDONLY)) {
    if (fd <= STDERR_FILENO) continue;
    ::close(fd);
    return;
  }
}

int run(int argc, char** argv) {
  CLI::App app("Divan: a document database that does its own chores.");
  app.set_version_flag("--version", std::string("divan ") + DIVAN_VERSION);
  app.require_subcommand(1);
  CommandLine line;
  auto* serve_command = add_serve(app, line);
  auto* worker_command = add_worker(app, line);
  auto* load_command = add_load(app, line);
  auto* backup_command = add_backup(app, line);
  auto* restore_command = add_restore(app, line);
  auto* verify_command = add_verify(app, line);
  auto* near_command = add_near(app, line);
  auto* search_command = add_search(app, line);
  auto* triggers_command = add_triggers(app, line);
  auto* status = app.add_subcommand("status", "Show databases, nodes and running builds");
  Command command;
  add_jobs_commands(app, command);
  add_workers_commands(app, command);
  auto* updates = app.add_subcommand("updates", "Show which databases have changed");
  updates->add_flag("--follow", line.follow, "Continue with new changes");
  for (auto* inspection : {status, updates}) add_query(*inspection, line.inspect);
  add_generate(app, command);

  CLI11_PARSE(app, argc, argv);
  if (*worker_command) {
    line.serve.server.serves = false;
    line.serve.server.listens = !line.bind.empty() || !line.port.empty();
  }
  if (*serve_command || *worker_command) return run_process(line);
  if (*load_command) return load(line.load);
  if (*backup_command) backup(line.backup);
  if (*restore_command) {
    if (restore_command->count("--data-dir") > 0)
      line.restore.new_data_dir = line.restore.connection.data_dir;
    restore(line.restore);
  }
  if (*verify_command && line.verify.data_dir.empty() && line.verify.store.empty())
    throw divan::bad_request("divan verify requires a data directory or --store.");
  if (*verify_command) return verify(line.verify);
  if (*near_command) show_near(line.near);
  if (*search_command) show_search(line.search);
  if (*triggers_command) show_triggers(line.triggers);
  if (*status) show_status(line.inspect);
  if (*updates) show_updates(line.inspect, line.follow);
  if (command) return command();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_files();
  const absl::Cleanup stop_client = [] { divan::kv::fdb::Client::stop(); };
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    // The message may contain text of the server or of a file.
    std::fprintf(stderr, "divan: %s\n", divan::printable(error.what()).c_str());
    return 1;
  }
}
