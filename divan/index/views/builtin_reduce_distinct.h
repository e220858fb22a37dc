// _approx_count_distinct: about how many distinct keys rows have, within some 2 %; values do not matter. A
// HyperLogLog of 2,048 registers, as CouchDB's: a hash of a key chooses a register, which keeps the longest
// run of zeros that the rest of a hash began with, plus one. (Flajolet and others, 2007; the estimate is
// Ertl's of 2017, arXiv:1702.01284, which needs no tables of corrections and is good from zero on.)
//
// A result is a string: of three characters for each register that is not zero, in order, or of one for each
// of all registers as soon as that is shorter. Characters stand for six bits. So a result of 32 rows has a
// hundred bytes, and none more than 2,050.
//
// Keys are the same when they are one key in the order of rows. (CouchDB's count keys apart that are equal
// but not the same, such as 1 and 1.0.)
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/views/builtin_reduce.h"

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

  // Registers that were raised, some perhaps more than once: index and run in one number. A group of few rows
  // costs no more than these.
  std::vector<std::uint32_t> few_;
  std::vector<std::uint8_t> registers_;  // all of them, when they are no longer few
};

}  // namespace divan::index::views
