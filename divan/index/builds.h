// Builds of indexes as jobs: who asks for one, and what is known of those that run.
#pragma once

#include "divan/index/index.h"
#include "divan/jobs/attempts.h"

namespace divan::index {

/// What a build is about: the data of its job.
struct BuildRequest {
  std::string database;
  std::int64_t database_number = 0;
  std::string design_document;
  std::string signature;  // 16 bytes

  std::string to_json() const;
  /// Throws bad_request.
  static BuildRequest parse(std::string_view json);
};

/// The id of the job that builds an index of a database; there is one whoever asks for it.
std::string build_id(const docs::Database& database, std::string_view signature);

/// The name of the database in a build's id.
std::string_view database_of_build(std::string_view id);

// Who wants a build, as the priority of its job: the lower one runs first, and one that runs gives way to it.
inline constexpr std::int64_t kQueryPriority = 0;    // somebody waits for its rows
inline constexpr std::int64_t kOverduePriority = 5;  // ken, of one that is far behind and has waited for long
inline constexpr std::int64_t kCatchUpPriority = 10;  // ken, of an index that is not far behind
inline constexpr std::int64_t kBuildPriority = 20;    // ken, of any other

class Builder;

/// Asks for an index to be brought up to date. Writes nothing if its job runs, or waits and is as urgent; a
/// job that waits gets the priority if it is more urgent, any other one is run (again), at once if this
/// process's `builder` has a thread for it.
void request_build(jobs::Queue& queue, kv::Transaction& tx, const docs::Database& database,
                   const Index& index, std::int64_t priority, Builder* builder);

/// Ends the attempt to build an index as failed, and notes that beside the index. `advanced`: it got further
/// than the one before; `by_function`: a function runs into its limits. Throws halt.
void fail_build(jobs::Queue& queue, kv::Transaction& tx, const IndexKeys& keys, const jobs::Attempt& attempt,
                std::string_view why, bool by_function, bool advanced);

/// Declares the job types of the kinds, as the server's own. A build that fails is not tried again by the
/// queue: whoever wants the index asks for it again (ken after a pause, a query when the next one comes).
void declare_builds(jobs::Queue& queue, kv::Database& store, const Kinds& kinds);

}  // namespace divan::index
