// _sum: adds numbers; arrays of numbers element by element, where the shorter one is padded with zeros and a
// number counts as an array of one; objects member by member, to any depth.
//
// Some of CouchDB's behaviour may surprise, and is the same here: a value to which nothing is added is not
// checked (a group of one object, or the last elements of the longest array); a member that is the integer
// zero can become an object; the cause of an error is the value that was being added or, for arrays, the rest
// of the sum. Where CouchDB crashes (an object added to a number other than zero), Divan throws the ordinary
// error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "divan/index/views/builtin_reduce_value.h"
#include "divan/index/views/reducer.h"

namespace divan::index::views {

/// See Reducer.
class SumReducer final : public Reducer {
 public:
  explicit SumReducer(const SumLimit& limit) : limit_(limit) {}

  void add(const ReducedRow& row) override;
  /// The result of an empty reducer is neutral.
  using Reducer::merge;
  void merge(std::string_view partial, std::uint64_t bytes) override;
  std::string result() const override;
  std::uint64_t bytes_in() const override { return bytes_in_; }

 private:
  void accumulate(std::string_view value, std::uint64_t bytes);
  void check_limit(std::size_t size) const;

  const SumLimit& limit_;
  Value sum_ = Number();
  std::uint64_t bytes_in_ = 0;
  /// The sum is measured when bytes_in_ reaches this many bytes, so that it cannot grow far beyond its limit.
  std::uint64_t next_check_ = 1 << 20;
};

}  // namespace divan::index::views
