// Removing a job whose header cannot be read, and so does not say which other rows it has.
#pragma once

#include "divan/jobs/queue.h"

namespace divan::jobs {

/// Removes a job whose header is damaged, with its data, results, history, and all entries of its type that
/// name it. Reads all entries of the type, some thousands per transaction; removes the job in one. The counts
/// stay right if an entry was found or the header still shows the state; otherwise `divan verify` reports
/// them. Returns false if the header is missing, whole, or of a layout that a newer version wrote.
/// Thread-safe.
bool remove_damaged(Queue& queue, kv::Database& store, std::string_view type, std::string_view id);

}  // namespace divan::jobs
