// _stats: sum, count, minimum, maximum and sum of squares of numbers. A value can also be an object with
// these five members, the statistics of what was aggregated before; or an array of such values, whose
// elements are reduced each for itself, and then all values must be arrays of one length.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "divan/index/views/builtin_reduce.h"
#include "divan/index/views/builtin_reduce_value.h"

namespace divan::index::views {

/// See Reducer.
class StatsReducer final : public Reducer {
 public:
  void add(const ReducedRow& row) override;
  /// The result of a reducer that took nothing changes nothing.
  using Reducer::merge;
  void merge(std::string_view partial, std::uint64_t bytes) override;
  std::string result() const override;

  struct Stats {
    Number sum, count, min, max, sumsqr;
  };
  struct State;
  using States = std::vector<State>;
  struct State : std::variant<Stats, States> {
    using variant::variant;
  };

 private:
  bool empty_ = true;
  State state_;
};

}  // namespace divan::index::views
