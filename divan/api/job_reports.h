// Reports of workers on several of their jobs in one request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "divan/api/body.h"
#include "divan/api/call.h"
#include "divan/api/context.h"
#include "divan/jobs/attempts.h"

namespace divan::api {

/// Reports of one kind. Each has its own result, since a worker that has lost one job may still have the
/// others. Not thread-safe.
class BulkReport {
 public:
  /// `report` is "_finish", for example. `jobs` have its members (members_of_report()), and, without `type`,
  /// the type of each. Throws bad_request, before any report is executed.
  BulkReport(const Context& context, const Call& call, std::string report, std::vector<Body> jobs,
             const std::optional<std::string>& type);
  BulkReport(const BulkReport&) = delete;
  BulkReport& operator=(const BulkReport&) = delete;

  /// Returns true if an io thread may execute them.
  bool is_short() const;

  /// co_await: executes the reports, in as few transactions as possible. Throws an error of the store if no
  /// report has been executed; otherwise the error is the result of the remaining reports.
  Async<void> run(Call& call);
  /// Executes them all in a transaction of the caller, who passes the results to set_results() after its
  /// commit.
  std::vector<std::string> execute(kv::Transaction& tx) const { return execute_some(tx, 0, reports_.size()); }
  void set_results(std::vector<std::string> results) { results_ = std::move(results); }

  /// Returns true if there are reports, and they have been executed.
  bool has_results() const { return !results_.empty(); }
  /// The results as a JSON array.
  std::string json() const;

 private:
  struct Report {
    jobs::Attempt attempt;
    const Body* body;
  };

  std::size_t batch_end(std::size_t begin) const;
  std::vector<std::string> execute_some(kv::Transaction& tx, std::size_t begin, std::size_t end) const;
  std::string refusal(std::size_t i, const Error& error, int status) const;

  const Context& context_;
  const std::string report_;
  const std::vector<Body> bodies_;
  std::vector<Report> reports_;
  std::size_t bytes_ = 0;
  std::vector<std::string> results_;
};

/// The members of a report's body; with `with_type`, also `type`.
MemberNames members_of_report(std::string_view report, bool with_type = false);

}  // namespace divan::api
