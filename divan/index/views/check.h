// Checks the rows of indexes, for `divan verify`.
#pragma once

#include <map>

#include "divan/index/left_out.h"
#include "divan/kv/check.h"

namespace divan::index::views {

/// Verifies that the rows of a view are complete, equal to those in its documents' lists, and counted by its
/// counter; that its reduce nodes, if marked complete, are at the boundaries that the rows define; and that
/// an index with rows has a sequence, which is not greater than the store's version. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// Returns the name of the database with a number; nullopt if there is none, whose indexes are ignored.
  using NameOf = std::function<std::optional<std::string>(std::int64_t number)>;

  /// `version` is the store's. The findings must outlive the check.
  Check(kv::Version version, kv::Findings& findings, NameOf name_of)
      : version_(version), findings_(findings), name_of_(std::move(name_of)) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource& rows) override;

 private:
  struct Tally {
    kv::RowSum rows, listed;                                 // of the keys after the part
    std::map<std::int64_t, std::int64_t> counted, counters;  // rows of a view
    std::map<std::int64_t, kv::RowSum> boundaries, nodes;    // levels and positions, by view
    std::vector<std::int64_t> with_nodes;                    // views whose reduce nodes are complete
    LeftOutSummary left_out, left_out_counted;
    bool has_state = false;
    bool being_written = false;  // the index has the record of a large document
    kv::Findings values;         // damaged values
  };

  void index_row(std::string_view rest, std::string_view value);
  void view_row(std::string_view rest, std::string_view value);
  void list_row(std::string_view rest, std::string_view value);
  void record_row(std::string_view rest, std::string_view value);
  void reduce_node_row(std::string_view rest, std::string_view value);
  void end_row();
  void end_list();

  const kv::Version version_;
  kv::Findings& findings_;
  const NameOf name_of_;
  std::map<std::pair<std::int64_t, std::string>, Tally> tallies_;  // by database and signature

  // State of the row that is being read.
  Tally* tally_ = nullptr;
  std::optional<kv::ChunkedValue> row_;  // the view's row, so far
  std::string document_;                 // the document whose list is being read
  std::string list_;                     // the list, so far
};

}  // namespace divan::index::views
