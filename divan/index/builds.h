// Builds of indexes as jobs: their data, priorities and requests.
#pragma once

#include "divan/index/index.h"
#include "divan/jobs/attempts.h"
#include "divan/jobs/queue.h"

namespace divan::index {

/// The data of a build's job.
struct BuildRequest {
  std::string database;
  std::int64_t database_number = 0;
  std::string design_document;
  std::string signature;  // 16 bytes

  std::string to_json() const;
  /// Throws bad_request.
  static BuildRequest parse(std::string_view json);
};

/// The id of the job that builds an index of a database: one job, whatever requests it.
std::string build_id(const docs::Database& database, std::string_view signature);

/// The name of the database in a build's id.
std::string_view database_of_build(std::string_view id);

// The priorities of builds. Lower values run first, and running builds yield to them.
inline constexpr std::int64_t kQueryPriority = 0;     // a query waits for the index
inline constexpr std::int64_t kOverduePriority = 5;   // ken, if the index is far behind and waited for long
inline constexpr std::int64_t kCatchUpPriority = 10;  // ken, if the index is not far behind
inline constexpr std::int64_t kBuildPriority = 20;    // ken, otherwise

/// Accepts jobs for idle threads of this process.
class JobClaimer {
 public:
  virtual ~JobClaimer() = default;

  /// Accepts the most urgent due job of `type` for an idle thread; without an idle thread the job stays
  /// pending. To be called in the transaction that requests a build: this saves polling and another commit.
  virtual void try_claim(kv::Transaction& tx, std::string_view type) = 0;
};

/// Requests that an index be brought up to date. Writes nothing if its job is running, or pending with at
/// least this priority. A pending job gets the priority if it is more urgent; any other one runs (again), at
/// once if this process has a free thread: `claimer`, or null.
void request_build(jobs::Queue& queue, kv::Transaction& tx, const docs::Database& database,
                   const Index& index, std::int64_t priority, JobClaimer* claimer);

/// Ends an attempt to build an index as failed, and writes the failure to the index. `advanced`: it made
/// progress since the previous failure; `by_function`: a function exceeded its limits. Throws LockLost.
void fail_build(jobs::Queue& queue, kv::Transaction& tx, const IndexKeys& keys, const jobs::Attempt& attempt,
                std::string_view why, bool by_function, bool advanced);

/// Declares the job types of the kinds, as the server's own. The queue does not retry a failed build: it is
/// requested again by ken after a pause, or by the next query.
void declare_builds(jobs::Queue& queue, kv::Database& store, const Kinds& kinds);

}  // namespace divan::index
