// Automatic purges: of documents that were deleted long ago
// (https://docs.couchdb.org/en/stable/config/scanner.html).
//
// A step goes through all databases. In one that has a limit for the age of deleted documents, it purges
// those whose last change is older. The position up to which the changes have been searched is stored: what
// is not deleted there can only be deleted by a later change. So a step reads each change once, whatever the
// number of steps and processes.
#pragma once

#include "divan/base/config.h"
#include "divan/base/worker_loop.h"
#include "divan/docs/catalog.h"

namespace divan::purge {

/// Purges old deleted documents, and removes rows of purged ones that no index needs any more
/// (index/purged_documents.h). Processes with the background work `purge` have one each; any number may run
/// on the same store. `config` has the defaults, in [couch_auto_purge_plugin]. Thread-safe.
class AutoPurge {
 public:
  AutoPurge(kv::Database& store, docs::Catalog& catalog, const Clock& clock, const Config& config);
  AutoPurge(const AutoPurge&) = delete;
  AutoPurge& operator=(const AutoPurge&) = delete;

  /// Starts the thread that calls step().
  void start() { loop_.start(); }
  /// Ends the thread, after the present transaction of a step. Does not wait; the destructor does.
  void stop() { loop_.stop(); }
  /// Must be called when the settings have changed.
  void reconsider() { loop_.notify(); }

  /// One pass through all databases. An error of one is logged, and the others are purged nevertheless. Call
  /// on one thread only: that of start() if that was called. Returns when the next one is due.
  MonotonicTime step();

 private:
  void purge_database(const std::string& name);

  kv::Database& store_;
  docs::Catalog& catalog_;
  const Clock& clock_;
  const Config& config_;
  WorkerLoop loop_;  // calls step()
};

/// The settings in [couch_auto_purge_plugin]: the time for which databases without settings of their own keep
/// deleted documents (empty or "infinity": forever), and the time between two steps.
inline constexpr const char* kAutoPurgeSection = "couch_auto_purge_plugin";
inline constexpr const char* kDefaultTtl = "deleted_document_ttl";
inline constexpr const char* kRepeat = "repeat";
inline constexpr const char* kDefaultRepeat = "1_hour";

}  // namespace divan::purge
