#include "divan/app/backup.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "divan/app/command_environment.h"
#include "divan/app/data_directory.h"
#include "divan/app/files.h"
#include "divan/app/progress.h"
#include "divan/app/store.h"
#include "divan/app/upload.h"
#include "divan/backup/backup.h"
#include "divan/backup/restores.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/kv/embedded/engine.h"

namespace divan::app {
namespace {

namespace fs = std::filesystem;

// A data directory that is being created. Until it is complete, its store has a name that no server opens.
class NewDataDirectory {
 public:
  // Throws unless `path` is missing or empty; a file system may have a directory lost+found.
  explicit NewDataDirectory(const std::string& path) : path_(path) {
    check_no_unfinished_restore(path);
    made_ = create_data_directory(path_);
    if (!is_empty(path_)) {
      throw bad_request(fmt::format(
          "{} is not empty; a backup is restored into a new directory, or with --url into a running server.",
          path));
    }
  }
  ~NewDataDirectory() {
    std::error_code ignored;
    if (!complete_) fs::remove_all(store(), ignored);
    if (!complete_ && made_) fs::remove(path_, ignored);
  }
  NewDataDirectory(const NewDataDirectory&) = delete;
  NewDataDirectory& operator=(const NewDataDirectory&) = delete;

  fs::path store() const { return unfinished_restore(path_.string()); }
  void complete() {
    fs::rename(store(), path_ / "store");
    complete_ = true;
    sync_directory(path_.string());
    const fs::path parent = fs::canonical(path_).parent_path();
    sync_directory(parent.string());
  }

 private:
  static bool is_empty(const fs::path& path) {
    std::error_code error;
    const fs::directory_iterator files(path, error);
    if (error) throw bad_request(fmt::format("{}: {}", path.string(), error.message()));
    return std::all_of(begin(files), end(files),
                       [](const auto& file) { return file.path().filename() == "lost+found"; });
  }

  const fs::path path_;
  bool made_ = false;
  bool complete_ = false;
};

// Returns the number of rows.
std::uint64_t load(const RestoreOptions& options, kv::Database& store, const Clock& clock,
                   Progress& progress) {
  backup::RowLoader loader(store);
  backup::Header header;
  backup::Parser parser([&](std::string_view key, std::string_view value) { loader.add(key, value); },
                        [&](const backup::Header& read) { header = read; });
  read_file(options.file, [&](std::string_view piece, double fraction) {
    parser.feed(piece);
    if (!options.quiet) progress.show(fraction, static_cast<std::int64_t>(parser.rows()));
  });
  const auto end = parser.end();
  loader.finish(backup::version_after_restore(header, end.version, clock.wall_ms()));
  return end.rows;
}

void reject_single_databases(const RestoreOptions& options) {
  if (!options.databases.empty() || !options.as.empty())
    throw bad_request("Single databases can only be restored into a running server; use --url.");
}

void restore_directory(const RestoreOptions& options) {
  reject_single_databases(options);
  const SystemClock clock;
  SystemRng rng;
  Progress progress("Restoring", "rows", clock);
  NewDataDirectory directory(options.new_data_dir);
  std::uint64_t rows = 0;
  {
    kv::embedded::Options store_options;
    store_options.directory = directory.store().string();
    kv::embedded::EmbeddedDatabase store(store_options, clock, rng);
    rows = load(options, store, clock, progress);
  }
  directory.complete();
  if (!options.quiet) progress.finish(static_cast<std::int64_t>(rows));
}

void restore_store(const RestoreOptions& options) {
  reject_single_databases(options);
  if (!options.new_data_dir.empty()) throw bad_request("--store and --data-dir exclude each other.");
  CommandEnvironment with;
  Progress progress("Restoring", "rows", with.clock);
  NewStore store(options.store, with.config, with.clock, with.rng);
  const auto rows = load(options, store.database(), with.clock, progress);
  store.complete();
  if (!options.quiet) progress.finish(static_cast<std::int64_t>(rows));
}

// The contents of a backup, found by reading all of it.
struct Contents {
  backup::Header header;
  backup::Parser::End end;
  std::vector<backup::RestoredDatabase> databases;
};

Contents check_file(const std::string& path, bool quiet, const Clock& clock) {
  Contents contents;
  Progress progress("Checking", "rows", clock);
  backup::Parser parser(
      [&](std::string_view key, std::string_view value) {
        auto database = docs::read_catalog_row(key, value);
        if (!database) return;
        contents.databases.push_back({std::move(database->name), database->number, database->created_ms});
      },
      [&](const backup::Header& header) { contents.header = header; });
  read_file(path, [&](std::string_view piece, double fraction) {
    parser.feed(piece);
    if (!quiet) progress.show(fraction, static_cast<std::int64_t>(parser.rows()));
  });
  contents.end = parser.end();
  if (!quiet) progress.finish(static_cast<std::int64_t>(contents.end.rows));
  return contents;
}

std::vector<backup::RestoredDatabase> selected_databases(const RestoreOptions& options,
                                                         const Contents& contents) {
  std::vector<backup::RestoredDatabase> databases;
  if (options.databases.empty()) databases = contents.databases;
  for (const auto& name : options.databases) {
    const auto found = std::find_if(contents.databases.begin(), contents.databases.end(),
                                    [&](const auto& database) { return database.name == name; });
    if (found == contents.databases.end())
      throw not_found(fmt::format("The backup has no database {}.", name));
    databases.push_back(*found);
  }
  if (!options.as.empty()) {
    if (databases.size() != 1) throw bad_request("--as requires exactly one --database.");
    databases.front().name = options.as;
  }
  return databases;
}

// The version that a running server must reach. Versions in its own backups are never greater than its own;
// for a cluster a greater one requires a recovery.
kv::Version version_for(http::Client& client, const Contents& contents, const Clock& clock) {
  const auto uuid = json::parse_object(send_request(client, "GET", "/")).at("uuid");
  if (uuid.as_string() == contents.header.server_uuid) return contents.end.version;
  return backup::version_after_restore(contents.header, contents.end.version, clock.wall_ms());
}

// Reads the file twice. The first pass checks it, so that nothing of a damaged file reaches the server, and
// finds the names of the databases, which follow their rows.
void restore_databases(const RestoreOptions& options) {
  std::error_code error;
  if (options.file == "-" || (fs::exists(options.file, error) && !fs::is_regular_file(options.file, error)))
    throw bad_request(
        fmt::format("{} is not a regular file; a restore into a running server reads its backup twice.",
                    options.file == "-" ? "Standard input" : options.file));
  const SystemClock clock;
  const Contents contents = check_file(options.file, options.quiet, clock);
  const auto databases = selected_databases(options, contents);
  std::set<std::int64_t> numbers;
  for (const auto& database : databases) numbers.insert(database.number);
  http::Client client = connect(options.connection);
  Upload upload(client, clock, contents.header, version_for(client, contents, clock), databases);
  Progress progress("Restoring", "rows", clock);
  std::int64_t rows = 0;
  backup::Parser parser([&](std::string_view key, std::string_view value) {
    const auto number = docs::database_number(key);
    if (!number || !numbers.contains(*number)) return;
    upload.add(key, value);
    ++rows;
  });
  read_file(options.file, [&](std::string_view piece, double fraction) {
    parser.feed(piece);
    if (!options.quiet) progress.show(fraction, rows);
  });
  parser.end();
  upload.finish();
  if (!options.quiet) progress.finish(rows);
}

using Sink = std::function<bool(std::string_view)>;

// Writes the output of `write` to the file, and checks it on the way. The file appears when it is complete.
void write_file(const BackupOptions& options, const std::function<void(const Sink&)>& write) {
  const SystemClock clock;
  Progress progress("Backing up", "rows", clock);
  NewFile file(options.file);
  backup::Parser parser([](std::string_view, std::string_view) {});
  write([&](std::string_view bytes) {
    parser.feed(bytes);
    file.write(bytes);
    if (!options.quiet) progress.show(-1, static_cast<std::int64_t>(parser.rows()));
    return true;
  });
  const auto rows = parser.end().rows;
  file.commit();
  if (!options.quiet) progress.finish(static_cast<std::int64_t>(rows));
}

void back_up_store(const BackupOptions& options) {
  if (!is_shared(options.store))
    throw bad_request("The embedded store can only be backed up through its server; use --url.");
  CommandEnvironment with;
  const auto store = open_to_read(options.store, with.config, with.clock, with.rng);
  const backup::Header header{DIVAN_VERSION, server_uuid(*store, with.rng), with.clock.wall_ms()};
  write_file(options, [&](const Sink& sink) { backup::write_backup(*store, header, sink); });
}

void back_up_server(const BackupOptions& options) {
  http::ClientOptions client_options;
  client_options.wait_for_response = true;  // the backup may have to wait for others
  http::Client client = connect(options.connection, client_options);
  write_file(options, [&](const Sink& sink) { check_response(client.stream("GET", "/_backup", sink)); });
}

}  // namespace

void backup(const BackupOptions& options) {
  if (options.store.empty()) {
    back_up_server(options);
  } else {
    back_up_store(options);
  }
}

void restore(const RestoreOptions& options) {
  if (!options.store.empty()) {
    restore_store(options);
  } else if (!options.new_data_dir.empty()) {
    restore_directory(options);
  } else {
    restore_databases(options);
  }
}

}  // namespace divan::app
