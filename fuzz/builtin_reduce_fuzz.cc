// JSON texts, one a line: each reduction of them is an error or JSON text that, merged alone, gives itself.
// Also uses the whole text as a partial result, which may be invalid.
#include <cstdlib>
#include <string>
#include <vector>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/index/views/builtin_reduce.h"

namespace {

namespace views = divan::index::views;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_error(const views::ReduceError& error) {
  check(divan::json::compact(error.row_value()) == error.row_value());
  const auto reducer = views::make_reducer(views::BuiltinReduce::sum);
  try {
    reducer->merge(error.row_value());
    // Only _sum's own errors are merged as errors.
    check(error.name() != "builtin_reduce_error");
  } catch (const views::ReduceError& again) {
    check(again.name() == "builtin_reduce_error" && again.reason() == error.reason());
  }
}

// As from a damaged store: an error, or a valid reduction.
void check_partial(const views::Builtin& function, std::string_view partial) {
  try {
    const auto reducer = views::make_reducer(function, views::SumLimit::unlimited());
    reducer->merge(partial);
    const auto again = views::make_reducer(function, views::SumLimit::unlimited());
    again->merge(reducer->result());
    check(again->result() == reducer->result());
    views::shown_result(function, reducer->result());
  } catch (const divan::Error&) {}
}

void check_reduction(const views::Builtin& function, const std::vector<std::string>& values) {
  std::string result;
  try {
    const auto reducer = views::make_reducer(function, views::SumLimit::unlimited());
    for (const std::string& value : values) reducer->add({.value = value, .encoded_key = value});
    result = reducer->result();
  } catch (const views::ReduceError& error) {
    check_error(error);
    return;
  }
  check(divan::json::compact(result) == result);
  const auto merger = views::make_reducer(function, views::SumLimit::unlimited());
  merger->merge(result);
  check(merger->result() == result);
  const auto shown = views::shown_result(function, result);
  check(divan::json::compact(shown) == shown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  using views::BuiltinReduce;
  const views::Builtin functions[] = {BuiltinReduce::count,    BuiltinReduce::sum,
                                      BuiltinReduce::stats,    BuiltinReduce::approx_count_distinct,
                                      {BuiltinReduce::top, 2}, {BuiltinReduce::bottom, 100}};
  for (const auto& function : functions) check_partial(function, text);
  std::vector<std::string> values;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    try {
      values.push_back(divan::json::compact(text.substr(0, end)));
    } catch (const divan::Error&) { return 0; }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  for (const auto& function : functions) check_reduction(function, values);
  return 0;
}
