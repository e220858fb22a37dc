// Removes a job whose header is unreadable, so that its other rows must be searched for.
#pragma once

#include "divan/jobs/queue.h"

namespace divan::jobs {

/// Removes a job whose header is damaged, with its data, results, history, and all entries of its type that
/// name it. Reads all entries of the type, some thousands per transaction; removes the job in one. The counts
/// stay correct if an entry was found or the state can be read from the header; otherwise `divan verify`
/// reports them. Returns false if the header is missing, intact, or of a newer layout. Thread-safe.
bool remove_damaged(Queue& queue, kv::Database& store, std::string_view type, std::string_view id);

}  // namespace divan::jobs
