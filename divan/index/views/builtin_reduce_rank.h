// _top_N and _bottom_N: the N greatest (least) values, the greatest (least) first, in the order of keys
// (collation.h). Values of all types are allowed. Equal values count once.
//
// Of values that are equal but not identical, such as 1 and 1.0, the result contains the one whose text is
// less. (CouchDB: the one whose row came first, or was reduced first.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "divan/index/views/reducer.h"

namespace divan::index::views {

/// See Reducer.
class RankReducer final : public Reducer {
 public:
  RankReducer(std::size_t rank, bool greatest) : rank_(rank), greatest_(greatest) {}

  void add(const ReducedRow& row) override { insert(row.value); }
  using Reducer::merge;
  void merge(std::string_view partial, std::uint64_t bytes) override;
  std::string result() const override;

 private:
  struct Ranked {
    std::string encoded;
    std::string value;
  };

  bool insert(std::string_view value);

  const std::size_t rank_;
  const bool greatest_;
  std::vector<Ranked> best_;  // the best first
  std::string encoded_;       // the encoding of the value being added; a member to reuse its memory
};

}  // namespace divan::index::views
