// _stats: sum, count, minimum, maximum and sum of squares of numbers. A value can also be an object with
// these five members, which is a previous aggregate; or an array of such values. Arrays are reduced element
// by element and must all have the same length.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "divan/index/views/builtin_reduce_value.h"
#include "divan/index/views/reducer.h"

namespace divan::index::views {

/// See Reducer.
class StatsReducer final : public Reducer {
 public:
  void add(const ReducedRow& row) override;
  /// The result of an empty reducer is neutral.
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
