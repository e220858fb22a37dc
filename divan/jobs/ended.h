// Maintenance of ended jobs: pruning, and upgrading their entries from an older layout.
#pragma once

#include "divan/jobs/queue.h"

namespace divan::jobs {

struct EndedProgress {
  std::size_t jobs = 0;               // removed or upgraded
  std::optional<std::string> next{};  // `begin` of the next call; nullopt: there are no more
};

/// Removes those of the first `limit` ended jobs from `begin` on whose retention has passed. `begin` is
/// empty or the `next` of an earlier call.
EndedProgress prune(Queue& queue, kv::Transaction& tx, std::string_view type, std::size_t limit,
                    std::string_view begin = {});

/// Upgrades entries of ended jobs of header layout 3, which lists by state and prune() do not find: the first
/// `limit` from `begin` on. `begin` and the result are as for prune().
EndedProgress upgrade_ended(QueueCore& queue, kv::Transaction& tx, std::string_view type, std::size_t limit,
                            std::string_view begin = {});

}  // namespace divan::jobs
