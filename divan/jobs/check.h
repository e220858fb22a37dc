// Checks the rows of the job queue: for `divan verify`.
#pragma once

#include <map>
#include <set>

#include "divan/jobs/types.h"
#include "divan/kv/check.h"

namespace divan::jobs {

/// Every job has a type, its data (whole, and JSON), and exactly the entry that belongs to its state; there
/// are no other data and entries, and the counts are right. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// `version` is the store's. The findings must outlive the check.
  Check(kv::Version version, kv::Findings& findings) : version_(version), findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource& rows) override;

 private:
  using Counts = std::map<std::pair<std::string, std::int64_t>, std::int64_t>;  // of a type and a state

  void look_at(std::string_view key, std::string_view value);
  void header_row(std::string_view rest, std::string_view value);
  void check_epoch(std::int64_t epoch) const;
  void count_row(std::string_view rest, std::string_view value);
  void data_row(std::string_view key, std::string_view rest, std::string_view value);
  void end_data();
  void explain(kv::RowSource& rows);

  const kv::Version version_;
  kv::Findings& findings_;
  kv::RowSum entries_wanted_, entries_;    // keys
  kv::RowSum data_wanted_, data_;          // keys without the number of the chunk
  std::optional<kv::ChunkedValue> value_;  // data that go by
  std::set<std::string> types_, types_wanted_;
  std::set<std::string> periodic_, periodic_wanted_;  // types with a job of their own, with a schedule for it
  Counts counted_, counters_;
  std::map<std::string, std::int64_t> histories_, histories_wanted_;  // rows by type
};

}  // namespace divan::jobs
