// Checks the rows of indexes: for `divan verify`.
#pragma once

#include <map>

#include "divan/index/left_out.h"
#include "divan/kv/check.h"

namespace divan::index::views {

/// The rows of a view are whole, those that its documents' lists name, and counted by its counter; if its
/// nodes are said to be complete, they are those that the rows ask for; an index that has anything says how
/// far it is, which is no further than the store. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// The name of the database with a number; nothing if there is none, and then its indexes do not matter.
  using NameOf = std::function<std::optional<std::string>(std::int64_t number)>;

  /// `version` is the store's. The findings must outlive the check.
  Check(kv::Version version, kv::Findings& findings, NameOf name_of)
      : version_(version), findings_(findings), name_of_(std::move(name_of)) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource& rows) override;

 private:
  struct Tally {
    kv::RowSum rows, listed;                                 // keys behind the part
    std::map<std::int64_t, std::int64_t> counted, counters;  // rows of a view
    std::map<std::int64_t, kv::RowSum> boundaries, nodes;    // levels and places, of a view
    std::vector<std::int64_t> with_nodes;                    // views of which they are complete
    LeftOutSummary left_out, left_out_counted;
    bool has_state = false;
    bool being_written = false;  // a large document
    kv::Findings values;         // that are damaged
  };

  void look_at(std::string_view rest, std::string_view value);
  void row_row(std::string_view rest, std::string_view value);
  void list_row(std::string_view rest, std::string_view value);
  void record_row(std::string_view rest, std::string_view value);
  void node_row(std::string_view rest, std::string_view value);
  void end_row();
  void end_list();

  const kv::Version version_;
  kv::Findings& findings_;
  const NameOf name_of_;
  std::map<std::pair<std::int64_t, std::string>, Tally> tallies_;  // by database and signature

  // Of the row that goes by.
  Tally* tally_ = nullptr;
  std::optional<kv::ChunkedValue> row_;  // the row of a view, so far
  std::string document_;                 // whose list goes by
  std::string list_;                     // so far
};

}  // namespace divan::index::views
