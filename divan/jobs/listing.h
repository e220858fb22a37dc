// Lists of jobs, and changes of all jobs in a state, page by page: a page costs what it has, however many
// jobs there are in other states.
#pragma once

#include "divan/jobs/queue.h"

namespace divan::jobs {

struct ListOptions {
  // By state: pending jobs in the order in which they run, running ones by id, ended ones in the order of
  // their ends. Without: all by id.
  std::optional<State> state{};
  // The job to begin with. Where jobs are listed by id: or the next one.
  std::string start_id{};
  // Or Listed::next of the page before.
  std::string start{};
  bool descending = false;
  std::size_t limit = 100;
};

struct Listed {
  std::vector<Job> jobs;
  std::optional<std::string> next{};  // hexadecimal digits: where the next page begins, if there is one
};

/// Reads as snapshots. Damaged rows are reported and left out. Throws bad_request for an invalid `start`, and
/// not_found for a `start_id` that is not in the state.
Listed list_jobs(Queue& queue, kv::Transaction& tx, std::string_view type, const ListOptions& options);

enum class BulkChange { cancel, resubmit, remove };

struct BulkProgress {
  std::size_t jobs = 0;               // that were changed
  std::optional<std::string> next{};  // `start` of the next call; nullopt: all are done
};

/// Changes the first jobs in a state from `start` on (see Listed::next), up to `limit` and as many as one
/// transaction can hold. Of ended ones, those that ended until `until` (milliseconds since 1970), so that
/// a sequence of calls, each with the `next` of the one before, terminates.
BulkProgress change_jobs(Queue& queue, kv::Transaction& tx, std::string_view type, State state,
                         BulkChange change, std::string_view start, std::int64_t until, std::size_t limit);

}  // namespace divan::jobs
