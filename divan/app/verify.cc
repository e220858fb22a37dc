#include "divan/app/verify.h"

#include <fmt/format.h>

#include "divan/app/progress.h"
#include "divan/app/server.h"
#include "divan/backup/check.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/check.h"
#include "divan/index/views/check.h"
#include "divan/jobs/check.h"
#include "divan/kv/embedded/inspector.h"
#include "divan/kv/tuple_packer.h"
#include "divan/updates/check.h"
#include "divan/workers/check.h"

namespace divan::app {
namespace {

constexpr std::int64_t kRowsAShow = 4096;

// What belongs to no room: the server's identity, and marks of commits.
class ServerCheck final : public kv::RowCheck {
 public:
  explicit ServerCheck(kv::Findings& findings) : findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override {
    kv::tuple::Reader reader(key);
    const auto first = reader.take_string();
    if (first != "server_uuid" && first != "txid") return false;
    const bool right = first == "txid" ? kv::has_shape(reader.rest(), "ib") && value.empty()
                                       : reader.at_end() && value.size() == 32;
    if (!right) findings_.add("this is no row of the server", key);
    return true;
  }
  void finish(kv::RowSource&) override {}

 private:
  kv::Findings& findings_;
};

class Verification {
 public:
  explicit Verification(const VerifyOptions& options)
      : options_(options), store_(options.data_dir + "/store") {}

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
    return store_.check_files(findings_, [&](double fraction) {
      if (!options_.quiet) progress.show(fraction, static_cast<std::int64_t>(fraction * 100));
    });
  }

  void check_rows() {
    version_ = store_.check_engine_rows(findings_);
    docs::Check databases(version_, findings_);
    index::views::Check indexes(version_, findings_,
                                [&](std::int64_t number) { return databases.name_of(number); });
    jobs::Check jobs(version_, findings_);
    updates::Check updates(version_, findings_);
    workers::Check workers(version_, findings_);
    backup::Check restores(databases, findings_);
    ServerCheck server(findings_);
    const std::initializer_list<kv::RowCheck*> checks = {&databases, &indexes,  &jobs,  &updates,
                                                         &workers,   &restores, &server};
    try {
      read_rows(checks);
      for (auto* check : checks) check->finish(store_);
    } catch (const kv::Error& error) {
      findings_.add(fmt::format("The rows cannot be read any further: {}", error.reason()));
    }
    databases_ = databases.databases();
    unfinished_ = restores.unfinished();
  }

  void read_rows(std::initializer_list<kv::RowCheck*> checks) {
    Progress progress("Checking", "rows", clock_);
    const auto total = static_cast<double>(std::max<std::uint64_t>(store_.estimated_rows(), 1));
    store_.scan({"", "\xff"}, [&](std::string_view key, std::string_view value) {
      const bool known =
          std::any_of(checks.begin(), checks.end(), [&](auto* check) { return check->row(key, value); });
      if (!known) findings_.add("nothing of Divan's has such a key", key);
      if (++rows_ % kRowsAShow == 0 && !options_.quiet)
        progress.show(std::min(static_cast<double>(rows_) / total, 1.0), rows_);
      return true;
    });
    if (!options_.quiet) progress.finish(rows_);
  }

  void print() const {
    for (const auto& text : findings_.kept()) fmt::print("{}\n", text);
    if (findings_.count() > findings_.kept().size())
      fmt::print("... and {} more\n", findings_.count() - findings_.kept().size());
    if (unfinished_ > 0)
      fmt::print("{} databases of restores that were not finished: a server clears them away.\n",
                 unfinished_);
    if (findings_.count() > 0) {
      fmt::print("{}: {} findings\n", options_.data_dir, findings_.count());
    } else {
      fmt::print("{}: nothing is wrong with {} rows of {} databases\n", options_.data_dir, rows_,
                 databases_.size());
    }
  }

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
  kv::embedded::Inspector store_;
  kv::Findings findings_;
  kv::Version version_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t unfinished_ = 0;
  std::vector<docs::Check::Summary> databases_;
};

}  // namespace

int verify(const VerifyOptions& options) {
  refuse_unfinished_restore(options.data_dir);
  return Verification(options).run();
}

}  // namespace divan::app
