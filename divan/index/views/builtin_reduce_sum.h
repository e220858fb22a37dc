// _sum: adds numbers; arrays of numbers element by element, where a shorter one counts as filled up with
// zeros and a bare number as an array of one; objects member by member, to any depth.
//
// Some of what CouchDB does may surprise, and is done here alike: what has nothing to be added to is taken
// unchecked (a group of one object, or the longest array's last elements); a member that is the integer zero
// can still become an object; the error's cause is the value that was to be added or, for arrays, what is
// left of the sum. Where CouchDB crashes (an object added to a number that is not zero), this is the ordinary
// error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "divan/index/views/builtin_reduce.h"
#include "divan/index/views/builtin_reduce_value.h"

namespace divan::index::views {

/// See Reducer.
class SumReducer final : public Reducer {
 public:
  explicit SumReducer(const SumLimit& limit) : limit_(limit) {}

  void add(const ReducedRow& row) override;
  /// The result of a reducer that took nothing changes nothing.
  using Reducer::merge;
  void merge(std::string_view partial, std::uint64_t bytes) override;
  std::string result() const override;
  std::uint64_t bytes_in() const override { return bytes_in_; }

 private:
  void take(std::string_view value, std::uint64_t bytes);
  void check_limit(std::size_t size) const;

  const SumLimit& limit_;
  Value sum_ = Number();
  std::uint64_t bytes_in_ = 0;
  /// The sum is measured when this many bytes went in, so that it cannot grow much beyond its limit.
  std::uint64_t next_check_ = 1 << 20;
};

}  // namespace divan::index::views
