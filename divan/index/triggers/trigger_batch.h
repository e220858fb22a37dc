// A batch of documents and the jobs that they lead to.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/document_batch.h"
#include "divan/index/left_out.h"
#include "divan/index/triggers/definition.h"
#include "divan/jobs/acceptor.h"

namespace divan::index::triggers {

/// Where the jobs of a trigger come from, for the member `_trigger` of their data.
struct TriggerOrigin {
  std::string database;
  std::string design_document;
};

/// The job queue to which triggers add jobs.
struct Jobs {
  jobs::Queue& queue;
  /// If not null, jobs are accepted for its waiters in the transactions that add them.
  jobs::Acceptor* acceptor = nullptr;
};

/// The maximum number of jobs of one change, and of approximate bytes of their rows together.
inline constexpr std::size_t kMaxJobs = 1000;
inline constexpr std::size_t kMaxJobsBytes = 6'000'000;

/// See MappedBatch: the transaction that writes documents adds their jobs. A document is written in one
/// transaction. Not thread-safe.
class TriggerBatch final : public DocumentBatch {
 public:
  /// `documents` and the queue must outlive the batch; `definition` is the one that was mapped.
  TriggerBatch(std::span<const SourceDocument> documents, std::shared_ptr<const Definition> definition,
               TriggerOrigin origin, const Jobs& jobs)
      : source_(documents),
        definition_(std::move(definition)),
        origin_(std::move(origin)),
        queue_(jobs.queue),
        acceptor_(jobs.acceptor) {}

  void add_document(std::string id) override;
  /// The document adds no jobs.
  void add_failure(std::size_t document, std::string_view reason) override;
  /// Adds a job; if it would exceed a limit, or its type is one of the server's own, a failure instead.
  void add_job(std::size_t document, TriggeredJob job);
  std::size_t bytes() const override { return bytes_; }

  std::size_t documents() const override { return documents_.size(); }
  std::size_t prepare(kv::Database& store, const IndexKeys& keys, std::size_t first,
                      const IndexedSoFar& so_far) override;
  void commit(const std::function<void()>& transaction) override;
  /// Throws IndexChanged if the definition has changed, and no_such_job_type (404) if the type of a job is
  /// not declared.
  void write(kv::Transaction& tx, const IndexKeys& keys) const override;
  std::size_t rows() const override { return jobs_; }
  std::size_t failures() const override { return failures_; }

 private:
  struct Document {
    std::string id;
    std::vector<TriggeredJob> jobs;
    std::string origin;     // the member of their data, without the event
    std::size_t bytes = 0;  // approximate, of all rows that it writes
    std::optional<LeftOut> failure;

    // Set by prepare().
    std::optional<Event> event;      // nullopt: none, or unknown
    std::optional<bool> now_exists;  // the new value of its row; nullopt: it keeps its value
    std::optional<LeftOut> failure_before;
    bool fires = false;
  };

  void read_before(kv::Transaction& tx, const IndexKeys& keys);
  void find_event(Document& document, const SourceDocument& source, const std::optional<std::string>& seen,
                  const kv::Versionstamp& tracked_since) const;
  static std::string data_of(const Document& document, const TriggeredJob& job);
  bool is_pending(kv::Transaction& tx, const TriggeredJob& job) const;
  void add_jobs(kv::Transaction& tx, const IndexKeys& keys) const;
  const TriggeredJob* first_due() const;

  const std::span<const SourceDocument> source_;
  const std::shared_ptr<const Definition> definition_;
  const TriggerOrigin origin_;
  jobs::Queue& queue_;
  jobs::Acceptor* const acceptor_;
  std::shared_ptr<jobs::Acceptor::Poll> poll_;  // of the transaction under way
  std::vector<Document> documents_;
  std::size_t bytes_ = 0;
  std::size_t jobs_ = 0;
  std::size_t failures_ = 0;
  std::size_t begin_ = 0, end_ = 0;  // the documents of the next transaction
};

}  // namespace divan::index::triggers
