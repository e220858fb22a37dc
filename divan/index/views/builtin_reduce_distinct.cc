#include "divan/index/views/builtin_reduce_distinct.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "divan/base/json.h"

namespace divan::index::views {
namespace {

constexpr unsigned kIndexBits = 11;
constexpr std::size_t kRegisters = std::size_t{1} << kIndexBits;
constexpr unsigned kRunBits = 6;
constexpr unsigned kLongestRun = 64 - kIndexBits + 1;
constexpr std::uint32_t kRunMask = (1u << kRunBits) - 1;

// Bytes of a register in the form of a result that lists registers.
constexpr std::size_t kNamedSize = 3;
// Maximum size of few_: it takes less memory than all registers, and sorting it is faster than scanning them.
constexpr std::size_t kMaxFew = 256;

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr auto kDigitValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
  return values;
}();

Error damaged() { return internal_error("A partial result of _approx_count_distinct is damaged."); }

std::uint32_t digit(char c) {
  const auto value = kDigitValues[static_cast<unsigned char>(c)];
  if (value < 0) throw damaged();
  return static_cast<std::uint32_t>(value);
}

// Ertl's estimator: the contributions of registers that are zero, and of those that are saturated.
double sigma(double x) {
  double sum = x;
  double before = -1;
  for (double y = 1; sum != before; y += y) {
    before = sum;
    x *= x;
    sum += x * y;
  }
  return sum;
}

double tau(double x) {
  double sum = 1 - x;
  double before = -1;
  for (double y = 0.5; sum != before; y *= 0.5) {
    before = sum;
    x = std::sqrt(x);
    sum -= (1 - x) * (1 - x) * y;
  }
  return sum / 3;
}

}  // namespace

void DistinctReducer::add(const ReducedRow& row) {
  const std::uint64_t hash = XXH64(row.encoded_key.data(), row.encoded_key.size(), 0);
  const auto zeros = static_cast<unsigned>(std::countl_zero(hash << kIndexBits));
  raise(hash >> (64 - kIndexBits), static_cast<std::uint8_t>(std::min(zeros + 1, kLongestRun)));
}

void DistinctReducer::raise(std::size_t index, std::uint8_t run) {
  if (registers_.empty()) {
    few_.push_back(static_cast<std::uint32_t>(index) << kRunBits | run);
    if (few_.size() >= kMaxFew) use_registers();
  } else if (registers_[index] < run) {
    registers_[index] = run;
  }
}

void DistinctReducer::use_registers() {
  registers_.assign(kRegisters, 0);
  for (const std::uint32_t each : few_) {
    auto& run = registers_[each >> kRunBits];
    run = std::max(run, static_cast<std::uint8_t>(each & kRunMask));
  }
  few_.clear();
}

// The registers that are not zero, without duplicates, sorted.
std::vector<std::uint32_t> DistinctReducer::sorted() const {
  std::vector<std::uint32_t> raised = few_;
  for (std::size_t i = 0; i < registers_.size(); ++i) {
    if (registers_[i] > 0) raised.push_back(static_cast<std::uint32_t>(i) << kRunBits | registers_[i]);
  }
  if (few_.empty()) return raised;
  // The maximum run of a register comes first.
  std::sort(raised.begin(), raised.end(),
            [](std::uint32_t a, std::uint32_t b) { return a >> kRunBits != b >> kRunBits ? a < b : a > b; });
  const auto same_register = [](std::uint32_t a, std::uint32_t b) { return a >> kRunBits == b >> kRunBits; };
  raised.erase(std::unique(raised.begin(), raised.end(), same_register), raised.end());
  return raised;
}

void DistinctReducer::merge(std::string_view partial, std::uint64_t) {
  if (partial.size() < 2 || partial.front() != '"' || partial.back() != '"') throw damaged();
  partial = partial.substr(1, partial.size() - 2);
  const auto run_of = [](std::uint32_t run) {
    if (run > kLongestRun) throw damaged();
    return static_cast<std::uint8_t>(run);
  };
  if (partial.size() == kRegisters) {
    if (registers_.empty()) use_registers();
    for (std::size_t i = 0; i < kRegisters; ++i)
      registers_[i] = std::max(registers_[i], run_of(digit(partial[i])));
    return;
  }
  if (partial.size() % kNamedSize != 0) throw damaged();
  for (std::size_t i = 0; i < partial.size(); i += kNamedSize) {
    const std::size_t index = digit(partial[i]) << kRunBits | digit(partial[i + 1]);
    const std::uint8_t run = run_of(digit(partial[i + 2]));
    if (index >= kRegisters || run == 0) throw damaged();
    raise(index, run);
  }
}

std::string DistinctReducer::result() const {
  const auto raised = sorted();
  std::string text = "\"";
  if (raised.size() * kNamedSize < kRegisters) {
    for (const std::uint32_t each : raised) {
      for (unsigned shift = 2 * kRunBits; shift > 0; shift -= kRunBits)
        text += kDigits[each >> shift & kRunMask];
      text += kDigits[each & kRunMask];
    }
  } else {
    text.resize(1 + kRegisters, kDigits[0]);
    for (const std::uint32_t each : raised) text[1 + (each >> kRunBits)] = kDigits[each & kRunMask];
  }
  return text + '"';
}

std::int64_t DistinctReducer::estimate() const {
  constexpr double registers = kRegisters;
  const auto raised = sorted();
  std::array<double, kLongestRun + 1> counts{};
  counts[0] = registers - static_cast<double>(raised.size());
  for (const std::uint32_t each : raised) ++counts[each & kRunMask];
  if (raised.empty()) return 0;
  double z = registers * tau(1 - counts[kLongestRun] / registers);
  for (std::size_t run = kLongestRun - 1; run > 0; --run) z = 0.5 * (z + counts[run]);
  z += registers * sigma(counts[0] / registers);
  constexpr double most = 9e18;  // if all registers are saturated, the estimate is infinite
  return std::llround(std::min(registers * registers / (2 * std::log(2.0) * z), most));
}

}  // namespace divan::index::views
