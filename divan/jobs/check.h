// Checks the rows of the job queue, for `divan verify`.
#pragma once

#include <map>
#include <set>

#include "divan/jobs/types.h"
#include "divan/jobs/worker_batch.h"
#include "divan/kv/check.h"

namespace divan::jobs {

/// Checks that every job has a declared type, its data (complete, and JSON), and exactly the entry of its
/// state; that there are no other data and entries, and that the counts are correct. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// `version` is the store's. The findings must outlive the check.
  Check(kv::Version version, kv::Findings& findings) : version_(version), findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource& rows) override;

 private:
  using Counts = std::map<std::pair<std::string, std::int64_t>, std::int64_t>;  // of a type and a state

  void check_row(std::string_view key, std::string_view value);
  void pending_row(std::string_view key, std::string_view value);
  void header_row(std::string_view rest, std::string_view value);
  void check_epoch(std::int64_t epoch) const;
  void count_row(std::string_view rest, std::string_view value);
  void data_row(std::string_view key, std::string_view rest, std::string_view value);
  void end_data();
  void check_batches(kv::RowSource& rows);
  void explain(kv::RowSource& rows);

  const kv::Version version_;
  kv::Findings& findings_;
  kv::RowSum copies_wanted_, copies_;      // keys and values of the entries of pending jobs
  bool all_have_copies_ = true;            // whether each of these entries has a copy of the header
  kv::RowSum entries_wanted_, entries_;    // keys
  kv::RowSum data_wanted_, data_;          // for each value, the key after that of its last chunk
  std::optional<kv::ChunkedValue> value_;  // the data being read
  std::set<std::string> types_, types_wanted_;
  std::set<std::string> periodic_, periodic_wanted_;  // types that have a periodic job, and that should
  Counts counted_, counters_;
  // The types and ids of the running jobs in each batch, by the key of its counter.
  std::map<std::string, JobNames> batches_;
  std::map<std::string, std::int64_t> histories_, histories_wanted_;  // number of rows by type
};

}  // namespace divan::jobs
