// Checks the rows of full-text indexes, for `divan verify`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "divan/index/search/live_documents.h"
#include "divan/kv/check.h"

namespace divan::index::search {

/// Verifies that rows are whole; that the live documents, those with an id and those with stored fields are
/// the same; and that the entries of live documents have as many terms as the counters of their fields say.
/// Receives the rows of full-text indexes only; views::Check those that all kinds of index have. Not
/// thread-safe.
class Check final : public kv::RowCheck {
 public:
  using NameOf = std::function<std::optional<std::string>(std::int64_t number)>;

  /// `name_of` as in views::Check. The findings must outlive the check.
  Check(kv::Findings& findings, NameOf name_of) : findings_(findings), name_of_(std::move(name_of)) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource& rows) override;

 private:
  struct Counters {
    std::int64_t documents = 0, terms = 0;
    bool operator==(const Counters&) const = default;
  };
  struct Tally {
    IndexState state;
    std::map<std::uint64_t, NumberSet> live;
    kv::RowSum live_numbers, stored, named;                      // of document numbers
    std::map<std::string, Counters> entries, lengths, counters;  // by field
    std::optional<kv::ChunkedValue> document;                    // that is being read
    kv::Findings values;                                         // damaged values

    bool is_live(DocumentNumber number) const;
  };

  static void index_row(Tally& tally, Part part, std::string_view rest, std::string_view value);
  static void entry_row(Tally& tally, std::string_view rest, std::string_view value);
  static void document_row(Tally& tally, std::string_view rest, std::string_view value);
  static void end_document(Tally& tally);
  void compare(const Tally& tally, const std::function<void(std::string_view)>& found) const;

  kv::Findings& findings_;
  const NameOf name_of_;
  std::map<std::pair<std::int64_t, std::string>, Tally> tallies_;  // by database and signature
};

}  // namespace divan::index::search
