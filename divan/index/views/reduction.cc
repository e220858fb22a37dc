#include "divan/index/views/reduction.h"

#include <fmt/core.h>

#include <utility>

#include "divan/base/check.h"
#include "divan/base/json.h"
#include "divan/index/views/builtin_reduce.h"

namespace divan::index::views {
namespace {

constexpr std::string_view kSumErrorName = "builtin_reduce_error";

js::Function function_of(const ViewSet& views, const View& view) {
  return {view.name, view.reduce, views.origin().owner};
}

SumLimit sum_limit(const ViewSet& views, const View& view) {
  const auto function = function_of(views, view);
  return {.limit = views.pool().reduce_limit(),
          .context = js::reduce_context(function),
          .log = [function, &pool = views.pool()](const std::string& message) {
            pool.log_failure(function, fmt::format("{}: {}", kOverflowError, message));
          }};
}

class BuiltinReduction final : public Reduction {
 public:
  BuiltinReduction(const Builtin& function, SumLimit limit) : function_(function), limit_(std::move(limit)) {
    begin();
  }

  void add(const ViewRow& row) override {
    attempt([&] { reducer_->add({row.value, row.encoded_key, row.position}); });
  }
  void add(const Partial& partial) override {
    attempt([&] { reducer_->merge(partial.value, partial.bytes); });
  }

  void end_group() override {
    attempt([&] { group_.partial = {reducer_->result(), reducer_->bytes_in()}; });
    groups_.push_back(std::move(group_));
    begin();
  }

  std::vector<Reduced> take_results() override { return std::exchange(groups_, {}); }

  std::string shown(Reduced reduced) const override {
    const bool failed = reduced.error.has_value();
    std::string value = Reduction::shown(std::move(reduced));
    return failed ? value : shown_result(function_, std::move(value));
  }

  const Reduced* failed() const override { return group_.error ? &group_ : nullptr; }

 private:
  void begin() {
    reducer_ = make_reducer(function_, limit_);
    group_ = {};
  }

  template <class Step>
  void attempt(Step step) {
    if (group_.error) return;
    try {
      step();
    } catch (const ReduceError& error) {
      group_.partial = {error.row_value(), 0};
      group_.error = error;
    }
  }

  const Builtin function_;
  const SumLimit limit_;
  std::unique_ptr<Reducer> reducer_;
  Reduced group_;  // the current group
  std::vector<Reduced> groups_;
};

// Collects rows, and reduces those of many groups with one message to the sandbox. A group that is too large
// for one call is reduced in parts, and the parts' results are reduced again.
class JsReduction final : public Reduction {
 public:
  JsReduction(const ViewSet& views, const View& view)
      : function_(function_of(views, view)), pool_(views.pool()), limits_(views.limits()), groups_(1) {}

  void add(const ViewRow& row) override {
    Group& group = groups_.back();
    if (group.parts.empty() || group.parts.back().size() >= kRowsPerCall) group.parts.emplace_back();
    group.parts.back().push_back({std::string(row.key), std::string(row.id), std::string(row.value)});
  }
  void add(const Partial& partial) override { groups_.back().reduced.push_back(partial.value); }

  void end_group() override { groups_.emplace_back(); }

  std::vector<Reduced> take_results() override {
    reduce_parts();
    while (reduce_again()) {}
    std::vector<Reduced> ended;
    for (std::size_t i = 0; i + 1 < groups_.size(); ++i) {
      Group& group = groups_[i];
      if (!group.result.error && !group.reduced.empty())
        group.result.partial.value = std::move(group.reduced.front());
      ended.push_back(std::move(group.result));
    }
    groups_.erase(groups_.begin(), groups_.end() - 1);
    return ended;
  }

  const Reduced* failed() const override {
    const Reduced& current = groups_.back().result;
    return current.error ? &current : nullptr;
  }

  // As in CouchDB, a group for which the function throws has the value null. The exception is logged.
  std::string shown(Reduced reduced) const override {
    if (!reduced.error || reduced.partial.value.empty()) return Reduction::shown(std::move(reduced));
    pool_.log_failure(function_, reduced.error->reason());
    return std::move(reduced.partial.value);
  }

 private:
  static constexpr std::size_t kRowsPerCall = 1000;

  struct Row {
    std::string key;
    std::string id;
    std::string value;
  };
  struct Group {
    std::vector<std::vector<Row>> parts;
    std::vector<std::string> reduced;
    Reduced result;
  };
  struct Call {
    Group* group;
    std::vector<js::ReduceRow> rows;
  };

  // Runs all calls, with one message if they fit. Results are added to their groups.
  void run(const std::vector<Call>& calls, bool rereduce) {
    if (calls.empty()) return;
    std::vector<js::ReduceGroup> rows;
    rows.reserve(calls.size());
    for (const Call& call : calls) rows.emplace_back(call.rows);
    auto results = pool_.reduce(function_, rereduce, rows, limits_);
    DIVAN_CHECK(results.size() == calls.size(), "{} results of {} calls", results.size(), calls.size());
    if (rereduce)
      for (const Call& call : calls) call.group->reduced.clear();
    for (std::size_t i = 0; i < results.size(); ++i) add_result(*calls[i].group, std::move(results[i]));
  }

  void add_result(Group& group, js::Reduction result) const {
    if (auto* text = std::get_if<std::string>(&result)) {
      group.reduced.push_back(std::move(*text));
      return;
    }
    const auto& failure = std::get<js::Failure>(result);
    if (failure.kind == js::FailureKind::reduce_overflow) {
      group.result.error = Error(500, std::string(kOverflowError), failure.message);
      return;
    }
    const bool threw = failure.kind == js::FailureKind::exception;
    group.result.exceeded_limit |= !threw && failure.kind != js::FailureKind::too_large;
    if (threw) group.result.partial.value = "null";
    group.result.error = Error(500, "reduce_function_failed",
                               fmt::format("Reduce function of view `{}` of `{}`: {}", function_.name,
                                           function_.owner.design_document, failure.message));
  }

  void reduce_parts() {
    std::vector<Call> calls;
    for (Group& group : groups_) {
      for (const auto& part : group.parts) {
        Call& call = calls.emplace_back(Call{&group, {}});
        call.rows.reserve(part.size());
        for (const Row& row : part) call.rows.push_back({row.key, row.id, row.value});
      }
    }
    run(calls, false);
    for (Group& group : groups_) group.parts.clear();
  }

  // Rereduces the values of groups that ended, and of the current one if it has many; returns false if there
  // were none to rereduce.
  bool reduce_again() {
    std::vector<Call> calls;
    for (Group& group : groups_) {
      const bool ended = &group != &groups_.back();
      if (group.result.error || group.reduced.size() < (ended ? 2 : kRowsPerCall)) continue;
      Call* call = &calls.emplace_back(Call{&group, {}});
      for (const auto& value : group.reduced) {
        if (call->rows.size() >= kRowsPerCall) call = &calls.emplace_back(Call{&group, {}});
        call->rows.push_back({"null", "", value});
      }
    }
    run(calls, true);
    return !calls.empty();
  }

  const js::Function function_;
  js::Pool& pool_;
  const js::Limits limits_;
  std::vector<Group> groups_;  // the current group is the last one
};

}  // namespace

std::string Reduction::shown(Reduced reduced) const {
  if (reduced.error && reduced.error->name() != kSumErrorName) throw Error(*reduced.error);
  return std::move(reduced.partial.value);
}

std::unique_ptr<Reduction> make_reduction(const ViewSet& views, const View& view) {
  if (const auto builtin = builtin_reduce(view.reduce))
    return std::make_unique<BuiltinReduction>(*builtin, sum_limit(views, view));
  return std::make_unique<JsReduction>(views, view);
}

}  // namespace divan::index::views
