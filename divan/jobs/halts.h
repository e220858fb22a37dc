// Halt messages: they notify live workers whose attempts the server has ended. They are lines of the
// connection that holds the worker's registration. (The error `halt` is LockLost: the worker's next report
// about the job fails with it, whether the message has arrived or not.)
#pragma once

#include "divan/jobs/queue_core.h"

namespace divan::jobs {

/// A message that an attempt was ended without its worker.
struct Halt {
  Attempt attempt;
  std::int64_t epoch = 0;
  std::string reason;
};

/// Adds a halt message for the attempt of a running job, which ends in this transaction. Writes nothing if no
/// connection has held the worker's registration.
void add_halt(QueueCore& queue, kv::Transaction& tx, const Job& job, std::string_view reason);

/// Reads and clears the halts of a worker. Damaged rows are logged and skipped.
std::vector<Halt> take_halts(kv::Transaction& tx, std::string_view role, std::string_view worker);

/// A watch that fires when a halt is added for the worker; null if the store has too many watches.
std::shared_ptr<kv::Watch> watch_halts(kv::Transaction& tx, std::string_view role, std::string_view worker);

/// Clears the halts of a worker that ends.
void clear_halts(kv::Transaction& tx, std::string_view role, std::string_view worker);

/// Decodes a halt from the part of its key after the worker and its value. Throws internal_error if they are
/// damaged.
Halt decode_halt(std::string_view key, std::string_view value);

}  // namespace divan::jobs
