#include "divan/index/views/reduction.h"

#include "divan/index/views/builtin_reduce.h"

namespace divan::index::views {
namespace {

class BuiltinReduction final : public Reduction {
 public:
  explicit BuiltinReduction(BuiltinReduce function) : function_(function) { begin(); }

  void add(const ViewRow& row) override {
    if (error_) return;
    try {
      reducer_->add(row.value);
    } catch (const ReduceError& error) { fail(error); }
  }

  void end_group() override {
    try {
      values_.push_back(error_ ? *error_ : reducer_->result());
    } catch (const ReduceError& error) {
      fail(error);
      values_.push_back(*error_);
    }
    begin();
  }

  std::vector<std::string> take_values() override { return std::exchange(values_, {}); }

 private:
  void begin() {
    reducer_ = make_reducer(function_);
    error_.reset();
  }

  // An error of _sum stands in the place of its group's value, any other ends the request: so does CouchDB.
  void fail(const ReduceError& error) {
    if (error.name() != "builtin_reduce_error") throw error;
    error_ = error.row_value();
  }

  const BuiltinReduce function_;
  std::unique_ptr<Reducer> reducer_;
  std::optional<std::string> error_;
  std::vector<std::string> values_;
};

// Gathers rows, and reduces those of many groups with one message to the sandbox. A group that is too large
// for one call is reduced in parts, and the parts are reduced again.
class JsReduction final : public Reduction {
 public:
  JsReduction(const ViewIndex& index, const View& view)
      : function_{view.name, view.reduce, index.origin().owner},
        pool_(index.pool()),
        limits_(index.limits()),
        groups_(1) {}

  void add(const ViewRow& row) override {
    Group& group = groups_.back();
    if (group.parts.empty() || group.parts.back().size() >= kRowsPerCall) group.parts.emplace_back();
    group.parts.back().push_back({std::string(row.key), std::string(row.id), std::string(row.value)});
    if (++rows_ >= kMaxRowsHeld) reduce_parts();
  }

  void end_group() override { groups_.emplace_back(); }

  std::vector<std::string> take_values() override {
    reduce_parts();
    std::vector<std::string> values;
    for (std::size_t i = 0; i + 1 < groups_.size(); ++i) values.push_back(combined(groups_[i]));
    groups_.erase(groups_.begin(), groups_.end() - 1);
    return values;
  }

 private:
  static constexpr std::size_t kRowsPerCall = 1000;
  static constexpr std::size_t kMaxRowsHeld = 20'000;

  struct Row {
    std::string key;
    std::string id;
    std::string value;
  };
  struct Group {
    std::vector<std::vector<Row>> parts;
    std::vector<std::string> reduced;
  };

  std::string value_of(const js::Reduction& reduction) const {
    if (const auto* failure = std::get_if<js::Failure>(&reduction)) {
      throw Error(500, "reduce_function_failed",
                  fmt::format("Reduce function of view `{}` of `{}`: {}", function_.name,
                              function_.owner.design_document, failure->message));
    }
    return std::get<std::string>(reduction);
  }

  void reduce_parts() {
    std::vector<std::vector<js::ReduceRow>> calls;
    std::vector<Group*> owners;
    for (Group& group : groups_) {
      for (const auto& part : group.parts) {
        std::vector<js::ReduceRow> rows;
        rows.reserve(part.size());
        for (const Row& row : part) rows.push_back({row.key, row.id, row.value});
        calls.push_back(std::move(rows));
        owners.push_back(&group);
      }
    }
    if (calls.empty()) return;
    const std::vector<js::ReduceGroup> groups(calls.begin(), calls.end());
    const auto results = pool_.reduce(function_, false, groups, limits_);
    for (std::size_t i = 0; i < results.size(); ++i) owners[i]->reduced.push_back(value_of(results[i]));
    for (Group& group : groups_) {
      group.parts.clear();
      if (group.reduced.size() >= kRowsPerCall) group.reduced = {combined(group)};
    }
    rows_ = 0;
  }

  std::string combined(const Group& group) {
    if (group.reduced.size() == 1) return group.reduced.front();
    std::vector<js::ReduceRow> rows;
    for (const auto& value : group.reduced) rows.push_back({"null", "", value});
    const js::ReduceGroup whole = rows;
    return value_of(pool_.reduce(function_, true, std::span(&whole, 1), limits_).at(0));
  }

  const js::Function function_;
  js::Pool& pool_;
  const js::Limits limits_;
  std::vector<Group> groups_;  // the present one at the end
  std::size_t rows_ = 0;
};

}  // namespace

std::unique_ptr<Reduction> make_reduction(const ViewIndex& index, const View& view) {
  if (const auto builtin = builtin_reduce(view.reduce)) return std::make_unique<BuiltinReduction>(*builtin);
  return std::make_unique<JsReduction>(index, view);
}

}  // namespace divan::index::views
