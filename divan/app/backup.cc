#include "divan/app/backup.h"

#include <filesystem>
#include <set>
#include <span>

#include "divan/app/files.h"
#include "divan/app/progress.h"
#include "divan/app/server.h"
#include "divan/backup/backup.h"
#include "divan/backup/restores.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/kv/embedded/engine.h"

namespace divan::app {
namespace {

namespace fs = std::filesystem;

// A data directory in the making. Until it is complete the store has a name under which no server serves it.
class NewDataDirectory {
 public:
  // Throws unless `path` is missing or empty.
  explicit NewDataDirectory(const std::string& path) : path_(path) {
    refuse_unfinished_restore(path);
    std::error_code error;
    const bool there = fs::exists(path_, error);
    if (there && !(fs::is_directory(path_, error) && fs::is_empty(path_, error))) {
      throw bad_request(fmt::format(
          "{} is not empty: a backup is restored into a new directory, or with --url into a running server.",
          path));
    }
    made_ = fs::create_directories(path_, error);
    if (error) throw bad_request(fmt::format("{} cannot be made: {}", path, error.message()));
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
    const fs::path parent = fs::absolute(path_).parent_path();
    sync_directory(parent.string());
  }

 private:
  const fs::path path_;
  bool made_ = false;
  bool complete_ = false;
};

void restore_directory(const RestoreOptions& options) {
  if (!options.databases.empty() || !options.as.empty())
    throw bad_request("Single databases are restored into a running server: see --url.");
  const SystemClock clock;
  SystemRng rng;
  Progress progress("Restoring", "rows", clock);
  NewDataDirectory directory(options.new_data_dir);
  std::uint64_t rows = 0;
  {
    kv::embedded::Options store_options;
    store_options.directory = directory.store().string();
    kv::embedded::EmbeddedDatabase store(store_options, clock, rng);
    backup::RowLoader loader(store);
    backup::Parser parser([&](std::string_view key, std::string_view value) { loader.add(key, value); });
    read_file(options.file, [&](std::string_view piece, double fraction) {
      parser.feed(piece);
      if (!options.quiet) progress.show(fraction, static_cast<std::int64_t>(parser.rows()));
    });
    rows = parser.end().rows;
    loader.finish(parser.end().version);
  }
  directory.complete();
  if (!options.quiet) progress.finish(static_cast<std::int64_t>(rows));
}

// What a backup has, found by reading it from end to end.
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

std::vector<backup::RestoredDatabase> chosen(const RestoreOptions& options, const Contents& contents) {
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
    if (databases.size() != 1) throw bad_request("--as names one database: choose it with --database.");
    databases.front().name = options.as;
  }
  return databases;
}

// Sends rows to a server, piece by piece. A request without an answer is sent again: any of them can be.
class Upload {
 public:
  Upload(http::Client& client, const Clock& clock, const Contents& contents,
         const std::vector<backup::RestoredDatabase>& databases)
      : client_(client), clock_(clock), header_(contents.header), version_(contents.end.version) {
    std::string body;
    json::Writer writer(body);
    writer.begin_object().key("version").number(version_).key("databases").begin_array();
    for (const auto& [name, number, created_ms] : databases) {
      writer.begin_object().key("name").string(name).key("number").number(number);
      writer.key("created").number(created_ms).end_object();
    }
    writer.end_array().end_object();
    const auto response = request("POST", "/_restore", body);
    check_response(response);
    target_ = "/_restore/" + std::string(json::parse_object(response.body).at("id").as_string());
    begin_piece();
  }
  // Gives it up unless it was finished. Should the server be gone, it does so by itself.
  ~Upload() {
    if (finished_) return;
    try {
      client_.request("DELETE", target_);
    } catch (const std::exception&) {}
  }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  void add(std::string_view key, std::string_view value) {
    writer_->add(key, value);
    ++rows_;
    if (piece_.size() >= piece_bytes_) send();
  }

  void finish() {
    send();
    finished_ = true;  // as far as we know from here on
    try {
      check_response(request("POST", target_, fmt::format(R"({{"rows":{}}})", rows_)));
    } catch (const Error& error) {
      if (!is_lost(error)) {
        finished_ = false;
        throw;
      }
      throw Error(error.status(), error.name(),
                  error.reason() +
                      " It was the last request of the restore, and may have been done or not: "
                      "either all databases are there, or none (`divan status`).");
    }
  }

 private:
  static bool is_lost(const Error& error) {
    return error.name() == "connection_failed" || error.name() == "connection_lost" ||
           error.name() == "timeout";
  }

  http::ClientResponse request(std::string_view method, const std::string& target, std::string_view body) {
    constexpr int kAttempts = 5;
    const bool is_json = method == "POST";
    const http::Headers headers{{"Content-Type", is_json ? "application/json" : "application/octet-stream"}};
    for (int attempt = 1;; ++attempt) {
      try {
        return client_.request(method, target, body, headers);
      } catch (const Error& error) {
        if (!is_lost(error) || attempt == kAttempts) throw;
        pause(std::chrono::milliseconds(250) * (1 << attempt));
      }
    }
  }

  void pause(Duration duration) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable nothing;
    clock_.wait_until(lock, nothing, clock_.now() + duration, [] { return false; });
  }

  void begin_piece() {
    piece_.clear();
    writer_.emplace(header_, [this](std::string_view bytes) {
      piece_ += bytes;
      return true;
    });
  }
  void send() {
    writer_->finish(version_);
    send(std::exchange(piece_, {}));
    begin_piece();
  }
  void send(const std::string& piece) {
    const auto response = request("PUT", fmt::format("{}/{}", target_, next_), piece);
    if (response.status == 413) return send_halves(piece, response);
    check_response(response);
    ++next_;
  }
  // The server, or something before it, takes no requests of that size.
  void send_halves(const std::string& piece, const http::ClientResponse& response) {
    std::vector<kv::KeyValue> rows;
    backup::Parser([&](std::string_view key, std::string_view value) {
      rows.push_back({std::string(key), std::string(value)});
    }).feed(piece);
    if (rows.size() < 2) check_response(response);
    piece_bytes_ = std::min(piece_bytes_, piece.size() / 2);
    const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
    for (const auto& half : {std::span(rows.begin(), middle), std::span(middle, rows.end())}) {
      std::string bytes;
      backup::Writer writer(header_, [&](std::string_view more) { return bytes += more, true; });
      for (const auto& row : half) writer.add(row.key, row.value);
      writer.finish(version_);
      send(bytes);
    }
  }

  http::Client& client_;
  const Clock& clock_;
  const backup::Header header_;
  const kv::Version version_;
  std::string target_;
  std::size_t piece_bytes_ = 512 << 10;  // at which a piece is sent; a block of rows may come on top
  std::string piece_;
  std::optional<backup::Writer> writer_;
  std::int64_t next_ = 0;
  std::int64_t rows_ = 0;
  bool finished_ = false;
};

// The file is read twice: nothing of a damaged one reaches the server, and the databases' names stand behind
// their rows.
void restore_databases(const RestoreOptions& options) {
  std::error_code error;
  if (options.file == "-" || (fs::exists(options.file, error) && !fs::is_regular_file(options.file, error)))
    throw bad_request(fmt::format(
        "{} is no file: into a running server a backup is restored from one, for it is read twice.",
        options.file == "-" ? "Standard input" : options.file));
  const SystemClock clock;
  const Contents contents = check_file(options.file, options.quiet, clock);
  const auto databases = chosen(options, contents);
  std::set<std::int64_t> numbers;
  for (const auto& database : databases) numbers.insert(database.number);
  http::Client client = connect(options.connection);
  Upload upload(client, clock, contents, databases);
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

}  // namespace

void backup(const BackupOptions& options) {
  const SystemClock clock;
  Progress progress("Backing up", "rows", clock);
  http::ClientOptions patient;
  patient.wait_for_response = true;  // others may come first
  http::Client client = connect(options.connection, patient);
  NewFile file(options.file);
  backup::Parser parser([](std::string_view, std::string_view) {});
  const auto response = client.stream("GET", "/_backup", [&](std::string_view bytes) {
    parser.feed(bytes);
    file.write(bytes);
    if (!options.quiet) progress.show(-1, static_cast<std::int64_t>(parser.rows()));
    return true;
  });
  check_response(response);
  const auto rows = parser.end().rows;
  file.commit();
  if (!options.quiet) progress.finish(static_cast<std::int64_t>(rows));
}

void restore(const RestoreOptions& options) {
  if (!options.new_data_dir.empty()) {
    restore_directory(options);
  } else {
    restore_databases(options);
  }
}

}  // namespace divan::app
