#include "divan/index/views/builtin_reduce.h"

#include "divan/base/json.h"
#include "divan/index/views/builtin_reduce_stats.h"
#include "divan/index/views/builtin_reduce_sum.h"

namespace divan::index::views {
namespace {

std::string error_object(std::string_view name, std::string_view reason, std::string_view caused_by) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("error").string(name).key("reason").string(reason);
  if (!caused_by.empty()) writer.key("caused_by").raw(caused_by);
  writer.end_object();
  return out;
}

std::string text_of(std::string_view object, std::string_view member) {
  const auto token = json::member(object, member);
  return token ? json::string_value(*token).value_or(std::string(*token)) : std::string();
}

class CountReducer final : public Reducer {
 public:
  void add(std::string_view) override { ++count_; }

  using Reducer::merge;
  void merge(std::string_view partial, std::uint64_t) override {
    const auto count = json::int_value(partial);
    if (!count) throw internal_error("A partial result of _count is not a number.");
    count_ += *count;
  }

  std::string result() const override { return std::to_string(count_); }

 private:
  std::int64_t count_ = 0;
};

}  // namespace

std::optional<BuiltinReduce> builtin_reduce(std::string_view reduce_source) {
  if (reduce_source.starts_with("_count")) return BuiltinReduce::count;
  if (reduce_source.starts_with("_sum")) return BuiltinReduce::sum;
  if (reduce_source.starts_with("_stats")) return BuiltinReduce::stats;
  return std::nullopt;
}

ReduceError::ReduceError(std::string name, std::string reason, std::string caused_by)
    : Error(500, name, reason), row_value_(error_object(name, reason, caused_by)) {}

ReduceError ReduceError::of_partial(std::string_view row_value) {
  ReduceError error(text_of(row_value, "error"), text_of(row_value, "reason"));
  error.row_value_ = row_value;
  return error;
}

std::unique_ptr<Reducer> make_reducer(BuiltinReduce function, SumLimit limit) {
  switch (function) {
    case BuiltinReduce::sum: return std::make_unique<SumReducer>(std::move(limit));
    case BuiltinReduce::stats: return std::make_unique<StatsReducer>();
    default: return std::make_unique<CountReducer>();
  }
}

}  // namespace divan::index::views
