// Lists of jobs, and changes of all jobs in a state, page by page. The cost of a page depends on its size,
// not on the number of jobs in other states.
#pragma once

#include "divan/jobs/queue.h"

namespace divan::jobs {

struct ListOptions {
  // With a state: pending jobs in queue order, running ones by id, ended ones in the order in which they
  // ended. nullopt: all jobs by id.
  std::optional<State> state{};
  // The first job of the page. In a list by id it need not exist: the page then begins with the next id.
  std::string start_id{};
  // Alternatively, Listed::next of the previous page.
  std::string start{};
  bool descending = false;
  std::size_t limit = 100;
};

struct Listed {
  std::vector<Job> jobs;
  std::optional<std::string> next{};  // ListOptions::start of the next page; nullopt: there is none
};

/// Uses snapshot reads. Damaged rows are reported and skipped. Throws bad_request for an invalid `start`, and
/// not_found for a `start_id` that is not in the state.
Listed list_jobs(Queue& queue, kv::Transaction& tx, std::string_view type, const ListOptions& options);

enum class BulkChange { cancel, resubmit, remove };

struct BulkProgress {
  std::size_t jobs = 0;               // number of changed jobs
  std::optional<std::string> next{};  // `start` of the next call; nullopt: all jobs were changed
};

/// Changes the first jobs in a state from `start` on (see Listed::next), up to `limit` and as many as one
/// transaction can hold. Of ended jobs, only those that ended until `until` (milliseconds since 1970), so
/// that a sequence of calls, each with the `next` of the previous one, terminates.
BulkProgress change_jobs(Queue& queue, kv::Transaction& tx, std::string_view type, State state,
                         BulkChange change, std::string_view start, std::int64_t until, std::size_t limit);

}  // namespace divan::jobs
