// Turns documents of replicator databases into jobs: a document adds one, a change replaces it, a deletion
// (of the document, or of its database) cancels it.
//
// Whoever writes to a replicator database marks it as changed in the same transaction. A processor reads the
// changes of marked databases. The jobs of documents are written in the transaction that advances the stored
// position in the changes, so that each change has its effect once, with any number of processes.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "divan/base/worker_loop.h"
#include "divan/docs/catalog.h"
#include "divan/docs/changes.h"
#include "divan/replicator/replication_document.h"

namespace divan::replicator {

/// Must be called at start-up by all processes that write documents: marks changed replicator databases.
void mark_changed_databases(docs::Catalog& catalog);

/// Processes with the background work `replicator` have one each. Thread-safe, except step(). The
/// constructor's arguments must outlive it.
class DocumentProcessor {
 public:
  /// `cancelled` is called on the processor's thread with the ids of running jobs that were cancelled.
  DocumentProcessor(kv::Database& store, docs::Catalog& catalog, jobs::Queue& queue, const Clock& clock,
                    std::string server_uuid, std::function<void(const std::string& id)> cancelled);
  DocumentProcessor(const DocumentProcessor&) = delete;
  DocumentProcessor& operator=(const DocumentProcessor&) = delete;

  /// Starts the thread that calls step().
  void start() { loop_.start(); }
  /// Ends the thread, after the present transaction. Does not wait; the destructor does.
  void stop() { loop_.stop(); }

  /// Processes the changes of all marked databases; the first one those of all replicator databases, since a
  /// version of Divan may have written them that did not mark them. Call on one thread only: that of start()
  /// if that was called. Returns when the next one is due.
  MonotonicTime step();

 private:
  void find_databases();
  void process(const std::string& name);
  bool process_next(kv::Transaction& tx, const std::string& name, std::vector<std::string>& cancelled);
  bool process_document(kv::Transaction& tx, const docs::Database& database, const docs::Change& change,
                        std::string_view body, std::vector<std::string>& cancelled);
  bool fail(kv::Transaction& tx, const docs::Database& database, const std::string& id,
            std::string_view reason);
  void cancel(kv::Transaction& tx, const std::string& name, const std::string& document,
              const std::string& job, std::vector<std::string>& cancelled);
  bool cancel_all(kv::Transaction& tx, const std::string& name, std::vector<std::string>& cancelled);

  kv::Database& store_;
  docs::Catalog& catalog_;
  jobs::Queue& queue_;
  const Clock& clock_;
  const std::string server_uuid_;
  const std::function<void(const std::string& id)> cancelled_;
  bool is_first_ = true;
  std::set<std::string> pending_;     // databases that are to be processed, besides those that are marked
  std::shared_ptr<kv::Watch> watch_;  // of the marks
  WorkerLoop loop_;                   // calls step()
};

}  // namespace divan::replicator
