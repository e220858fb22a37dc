// What tells a worker that an attempt of its has been ended although it lives: the connection that holds its
// registration. (It also hears of it at its next call for the job.)
#pragma once

#include "divan/jobs/queue.h"

namespace divan::jobs {

/// An attempt that was ended without its worker.
struct Halt {
  Attempt attempt;
  std::int64_t epoch = 0;
  std::string reason;
};

/// Notes for the connection that holds the registration of a running job's worker that its attempt ends in
/// this transaction. Writes nothing where there is no such connection.
void tell_of_halt(Queue& queue, kv::Transaction& tx, const Job& job, std::string_view reason);

/// Takes what was noted for a worker. Damaged rows are logged and left out.
std::vector<Halt> take_halts(kv::Transaction& tx, std::string_view role, std::string_view worker);

/// A watch that fires when something is noted for a worker; null if the store has too many.
std::shared_ptr<kv::Watch> watch_halts(kv::Transaction& tx, std::string_view role, std::string_view worker);

/// Forgets what was noted for a worker that ends.
void forget_halts(kv::Transaction& tx, std::string_view role, std::string_view worker);

/// Reads a row of these: what stands in the key behind the worker, and the value. Throws an internal error if
/// it is damaged.
Halt decode_halt(std::string_view key, std::string_view value);

}  // namespace divan::jobs
