#include "divan/app/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "divan/app/command_environment.h"
#include "divan/app/data_directory.h"
#include "divan/app/progress.h"
#include "divan/app/store.h"
#include "divan/backup/check.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/check.h"
#include "divan/index/search/check.h"
#include "divan/index/triggers/check.h"
#include "divan/index/views/check.h"
#include "divan/jobs/check.h"
#include "divan/kv/embedded/inspector.h"
#include "divan/kv/tuple_packer.h"
#include "divan/purge/times.h"
#include "divan/replicator/document_rows.h"
#include "divan/updates/check.h"
#include "divan/workers/check.h"

namespace divan::app {
namespace {

// Rows between two updates of the progress bar.
constexpr std::int64_t kProgressRows = 4096;

constexpr std::size_t kUuidBytes = 32;

// Checks the server's identity and its secret, which belong to no module, and the samples of the clock.
class ServerCheck final : public kv::RowCheck {
 public:
  ServerCheck(kv::Version version, kv::Findings& findings) : version_(version), findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override {
    if (is_sample(key, value)) return true;
    kv::tuple::Reader reader(key);
    const auto name = reader.take_string();
    if (name != "server_uuid" && name != "session_secret") return false;
    const std::size_t bytes = name == "server_uuid" ? kUuidBytes : kSessionSecretBytes;
    if (!reader.at_end() || value.size() != bytes)
      findings_.add(
          name == "server_uuid" ? "the server's identity is damaged" : "the secret of sessions is damaged",
          key);
    return true;
  }
  void finish(kv::RowSource&) override {}

 private:
  bool is_sample(std::string_view key, std::string_view value) {
    try {
      const auto sample = purge::read_time_sample(key, value);
      if (sample && sample->version > version_)
        findings_.add("a sample of the clock is later than the store", key);
      return sample.has_value();
    } catch (const Error& error) {
      findings_.add(error.reason(), key);
      return true;
    }
  }

  const kv::Version version_;
  kv::Findings& findings_;
};

// A store that is read completely.
class Source : public kv::RowSource {
 public:
  using Progress = std::function<void(double fraction)>;
  /// Returns true if the rows can be read.
  virtual bool check_files(kv::Findings& findings, const Progress& progress) = 0;
  virtual kv::Version check_engine_rows(kv::Findings& findings) = 0;
  /// The approximate number of rows; 0: unknown.
  virtual std::uint64_t estimated_rows() const = 0;
};

class DirectorySource final : public Source {
 public:
  explicit DirectorySource(const std::string& directory) : store_(directory) {}
  bool check_files(kv::Findings& findings, const Progress& progress) override {
    return store_.check_files(findings, progress);
  }
  kv::Version check_engine_rows(kv::Findings& findings) override {
    return store_.check_engine_rows(findings);
  }
  std::uint64_t estimated_rows() const override { return store_.estimated_rows(); }
  void scan(const kv::KeyRange& range, const kv::RowVisitor& visit) override { store_.scan(range, visit); }

 private:
  kv::embedded::Inspector store_;
};

// The cluster itself is responsible for its files.
class SharedSource final : public Source {
 public:
  explicit SharedSource(const std::string& store) {
    if (!is_shared(store))
      throw bad_request("--store requires a shared store; for an embedded store, use its data directory.");
    store_ = open_to_read(store, with_.config, with_.clock, with_.rng);
  }
  bool check_files(kv::Findings&, const Progress&) override { return true; }
  kv::Version check_engine_rows(kv::Findings&) override { return store_->begin()->read_version(); }
  std::uint64_t estimated_rows() const override { return 0; }
  void scan(const kv::KeyRange& range, const kv::RowVisitor& visit) override {
    store_->dump([&](std::string_view key, std::string_view value) {
      return key < range.begin || (key < range.end && visit(key, value));
    });
  }

 private:
  CommandEnvironment with_;
  std::unique_ptr<kv::Database> store_;
};

std::unique_ptr<Source> source_of(const VerifyOptions& options) {
  if (!options.store.empty()) return std::make_unique<SharedSource>(options.store);
  check_no_unfinished_restore(options.data_dir);
  return std::make_unique<DirectorySource>(options.data_dir + "/store");
}

class Verification {
 public:
  explicit Verification(const VerifyOptions& options) : options_(options), store_(source_of(options)) {}

  int run() {
    if (check_files()) check_rows();
    if (options_.json) {
      print_json();
    } else {
      print();
    }
    return findings_.count() == 0 ? 0 : 1;
  }

 private:
  bool check_files() {
    Progress progress("Checking", "% of the files", clock_);
    return store_->check_files(findings_, [&](double fraction) {
      if (!options_.quiet) progress.show(fraction, static_cast<std::int64_t>(fraction * 100));
    });
  }

  void check_rows() {
    version_ = store_->check_engine_rows(findings_);
    docs::Check databases(version_, findings_);
    index::views::Check indexes(version_, findings_,
                                [&](std::int64_t number) { return databases.name_of(number); });
    index::search::Check searches(findings_, [&](std::int64_t number) { return databases.name_of(number); });
    index::triggers::Check triggers(findings_);
    jobs::Check jobs(version_, findings_);
    updates::Check updates(version_, findings_);
    workers::Check workers(version_, findings_);
    backup::Check restores(databases, findings_);
    replicator::rows::Check replications(findings_);
    ServerCheck server(version_, findings_);
    const std::initializer_list<kv::RowCheck*> checks = {&databases,    &searches, &triggers, &indexes,
                                                         &jobs,         &updates,  &workers,  &restores,
                                                         &replications, &server};
    try {
      read_rows(checks);
      for (auto* check : checks) check->finish(*store_);
    } catch (const kv::Error& error) {
      findings_.add(fmt::format("Cannot read further rows: {}", error.reason()));
    }
    databases_ = databases.databases();
    unfinished_ = restores.unfinished();
  }

  void read_rows(std::initializer_list<kv::RowCheck*> checks) {
    Progress progress("Checking", "rows", clock_);
    const auto total = static_cast<double>(store_->estimated_rows());
    store_->scan({"", "\xff"}, [&](std::string_view key, std::string_view value) {
      const bool known =
          std::any_of(checks.begin(), checks.end(), [&](auto* check) { return check->row(key, value); });
      if (!known) findings_.add("unknown key", key);
      if (++rows_ % kProgressRows == 0 && !options_.quiet)
        progress.show(total > 0 ? std::min(static_cast<double>(rows_) / total, 1.0) : -1, rows_);
      return true;
    });
    if (!options_.quiet) progress.finish(rows_);
  }

  void print() const {
    for (const auto& text : findings_.kept()) fmt::print("{}\n", text);
    if (findings_.count() > findings_.kept().size())
      fmt::print("... and {} more\n", findings_.count() - findings_.kept().size());
    if (unfinished_ > 0)
      fmt::print("{} databases of unfinished restores: a server will remove them.\n", unfinished_);
    if (findings_.count() > 0) {
      fmt::print("{}: {} findings\n", place(), findings_.count());
    } else {
      fmt::print("{}: no findings in {} rows of {} databases\n", place(), rows_, databases_.size());
    }
  }

  const std::string& place() const { return options_.store.empty() ? options_.data_dir : options_.store; }

  void print_json() const {
    std::string out;
    json::Writer writer(out);
    writer.begin_object().key("ok").boolean(findings_.count() == 0).key("version").number(version_);
    writer.key("rows").number(rows_).key("databases").begin_array();
    for (const auto& [name, docs, deleted, bytes] : databases_) {
      writer.begin_object()
          .key("name")
          .string(kv::readable(name))
          .key("docs")
          .number(docs)
          .key("deleted")
          .number(deleted);
      writer.key("bytes").number(bytes).end_object();
    }
    writer.end_array().key("unfinished_restores").number(unfinished_);
    writer.key("findings_total").number(static_cast<std::int64_t>(findings_.count()));
    writer.key("findings").begin_array();
    for (const auto& text : findings_.kept()) writer.string(text);
    writer.end_array().end_object();
    fmt::print("{}\n", out);
  }

  const VerifyOptions options_;
  const SystemClock clock_;
  const std::unique_ptr<Source> store_;
  kv::Findings findings_;
  kv::Version version_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t unfinished_ = 0;
  std::vector<docs::Check::Summary> databases_;
};

}  // namespace

int verify(const VerifyOptions& options) { return Verification(options).run(); }

}  // namespace divan::app
