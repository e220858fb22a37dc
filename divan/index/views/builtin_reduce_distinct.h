// _approx_count_distinct: estimates the number of distinct keys, with a standard error of about 2 %. Values
// do not matter. A HyperLogLog of 2,048 registers, as in CouchDB: a hash of a key selects a register, which
// stores the maximum, over all hashes, of the number of leading zeros of the rest of the hash, plus one.
// (Flajolet and others, 2007; the estimator is Ertl's of 2017, arXiv:1702.01284, which needs no correction
// tables and has no lower limit.)
//
// A result is a string. It has three characters for each register that is not zero, in order, or one
// character for each register if that is shorter; a character encodes six bits. The result of 32 rows has
// at most 98 bytes, and no result has more than 2,050.
//
// Two keys are the same if they are equal in the order of rows. (CouchDB counts keys such as 1 and 1.0, which
// are equal but not identical, as two.)
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/views/reducer.h"

namespace divan::index::views {

/// See Reducer.
class DistinctReducer final : public Reducer {
 public:
  void add(const ReducedRow& row) override;
  using Reducer::merge;
  void merge(std::string_view partial, std::uint64_t bytes) override;
  std::string result() const override;

  std::int64_t estimate() const;

 private:
  void raise(std::size_t index, std::uint8_t run);
  void use_registers();
  std::vector<std::uint32_t> sorted() const;

  // The registers that are not zero, as long as they are few: index and run in one number. A register may
  // occur more than once. Keeps small groups small.
  std::vector<std::uint32_t> few_;
  std::vector<std::uint8_t> registers_;  // all registers; empty while few_ is used
};

}  // namespace divan::index::views
