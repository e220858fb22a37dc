// Builds of indexes as jobs: who asks for one, and what is known of those that run.
#pragma once

#include "divan/index/index.h"
#include "divan/jobs/queue.h"

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

/// Whether the last attempt at a build failed: it waits for its next one, which is not to be brought forward
/// by every change of the database.
bool waits_after_failure(jobs::Queue& queue, kv::Transaction& tx, const docs::Database& database,
                         const Index& index);

/// Asks for an index to be brought up to date: a job that is there already is run (again), none is added
/// twice.
void request_build(jobs::Queue& queue, kv::Transaction& tx, const docs::Database& database,
                   const Index& index);

/// Declares the job types of the kinds.
void declare_builds(jobs::Queue& queue, kv::Database& store, const Kinds& kinds);

}  // namespace divan::index
