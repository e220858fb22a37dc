#include "divan/index/views/builtin_reduce_sum.h"

#include <fmt/format.h>

#include <algorithm>

namespace divan::index::views {
namespace {

constexpr std::string_view kSumError =
    "The _sum function requires that map values be numbers, arrays of numbers, or objects. Objects cannot be "
    "mixed with other data structures. Objects can be arbitrarily nested, provided that the values for all "
    "fields are themselves numbers, arrays of numbers, or objects.";

[[noreturn]] void refuse(const Value& cause) {
  throw ReduceError("builtin_reduce_error", std::string(kSumError), to_json(cause));
}

bool by_name(const std::pair<std::string, Value>& a, const std::pair<std::string, Value>& b) {
  return a.first < b.first;
}

// Removes duplicate members: the last one counts, as in CouchDB's JSON parser.
void sort_members(Members& members) {
  if (members.sorted) return;
  auto& list = members.list;
  std::stable_sort(list.begin(), list.end(), by_name);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i + 1 < list.size() && list[i].first == list[i + 1].first) continue;
    if (kept != i) list[kept] = std::move(list[i]);
    ++kept;
  }
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(kept), list.end());
  members.sorted = true;
}

bool is_reduce_error(const Members& members) {
  for (const auto& [name, value] : members.list) {
    const auto* text = std::get_if<Opaque>(&value);
    if (name == "error" && text && text->text == R"("builtin_reduce_error")") return true;
  }
  return false;
}

void add_value(Value& sum, Value value);

void add_array(Array& sum, Array value) {
  for (std::size_t i = 0; i < std::min(sum.size(), value.size()); ++i) {
    auto* const total = std::get_if<Number>(&sum[i]);
    const auto* const number = std::get_if<Number>(&value[i]);
    if (!total || !number) refuse(Array(sum.begin() + static_cast<std::ptrdiff_t>(i), sum.end()));
    *total += *number;
  }
  for (std::size_t i = sum.size(); i < value.size(); ++i) sum.push_back(std::move(value[i]));
}

void add_object(Members& sum, Members value) {
  sort_members(sum);
  sort_members(value);
  const auto old_size = static_cast<std::ptrdiff_t>(sum.list.size());
  auto from = sum.list.begin();
  std::vector<std::pair<std::string, Value>> added;
  for (auto& member : value.list) {
    from = std::lower_bound(from, sum.list.end(), member, by_name);
    if (from != sum.list.end() && from->first == member.first) {
      add_value(from->second, std::move(member.second));
    } else {
      added.push_back(std::move(member));
    }
  }
  if (added.empty()) return;
  sum.list.insert(sum.list.end(), std::make_move_iterator(added.begin()),
                  std::make_move_iterator(added.end()));
  std::inplace_merge(sum.list.begin(), sum.list.begin() + old_size, sum.list.end(), by_name);
}

void add_value(Value& sum, Value value) {
  auto* const number = std::get_if<Number>(&sum);
  auto* const array = std::get_if<Array>(&sum);
  auto* const object = std::get_if<Members>(&sum);
  if (const auto* addend = std::get_if<Number>(&value)) {
    if (number) {
      *number += *addend;
    } else if (array) {
      add_array(*array, Array(1, *addend));
    } else {
      refuse(value);
    }
  } else if (auto* elements = std::get_if<Array>(&value)) {
    if (number) sum = Array(1, Value(*number));
    if (!number && !array) refuse(value);
    add_array(std::get<Array>(sum), std::move(*elements));
  } else if (auto* members = std::get_if<Members>(&value)) {
    if (is_reduce_error(*members)) throw ReduceError::of_partial(to_json(value));
    if (number && number->is_zero_integer()) {
      sum = std::move(value);
    } else if (object) {
      add_object(*object, std::move(*members));
    } else {
      refuse(value);
    }
  } else {
    refuse(value);
  }
}

}  // namespace

void SumReducer::add(const ReducedRow& row) { accumulate(row.value, row.value.size()); }

void SumReducer::merge(std::string_view partial, std::uint64_t bytes) {
  if (partial != "0") {
    accumulate(partial, bytes);
  } else {
    bytes_in_ += bytes;
  }
}

void SumReducer::accumulate(std::string_view value, std::uint64_t bytes) {
  bytes_in_ += bytes;
  add_value(sum_, parse_value(value));
  if (std::holds_alternative<Number>(sum_) || bytes_in_ < next_check_) return;
  const std::size_t size = to_json(sum_).size();
  check_limit(size);
  next_check_ = 2 * bytes_in_;
}

std::string SumReducer::result() const {
  std::string out = to_json(sum_);
  check_limit(out.size());
  return out;
}

void SumReducer::check_limit(std::size_t size) const {
  if (!limit_.limit.exceeded(bytes_in_, size)) return;
  const auto message = js::overflow_message(bytes_in_, size, limit_.context);
  if (limit_.limit.mode == js::ReduceLimit::Mode::on) throw ReduceError("builtin_reduce_error", message);
  if (limit_.log) limit_.log(message);
}

}  // namespace divan::index::views
