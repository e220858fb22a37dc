// What the check for conflicts costs the committer for one transaction, with 100,000 keys in the window and
// the oldest of them being forgotten all the time.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "divan/base/rng.h"
#include "divan/kv/embedded/conflict_set.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv::embedded {
namespace {

constexpr std::size_t kKeysInWindow = 100'000;
constexpr std::size_t kWrites = 4;
constexpr std::size_t kGroup = 8;  // transactions a version
constexpr std::size_t kPrepared = 1 << 18;

struct Checked {
  std::array<std::string, 3> reads;
  KeyRange range;
  std::array<std::string, kWrites> writes;
};

std::string key(std::string_view section, std::string_view id) {
  std::string key;
  tuple::Packer(key).string("db").integer(1).string(section).string(id);
  return key;
}

// Documents are updated at random; their rows in the changes grow with the version.
Checked transaction(Rng& rng, std::size_t number) {
  const auto document = [&] { return fmt::format("document-{:08}", rng.below(1'000'000)); };
  const std::string id = document();
  const std::string leaf = key("revs", id);
  return {{leaf, key("config", "a"), key("revs", document())},
          below(leaf),
          {leaf, key("body", id), key("changes", fmt::format("{:020}", number)), key("stats", "docs")}};
}

// Three point reads, one range read and four writes a transaction.
void conflict_check(benchmark::State& state) {
  SeededRng rng(7);
  std::vector<Checked> transactions;
  for (std::size_t i = 0; i < kPrepared; ++i) transactions.push_back(transaction(rng, i));
  ConflictSet set;
  Version version = 1;
  std::size_t next = 0;
  std::size_t in_group = 0;
  std::size_t conflicts = 0;
  const Version window = kKeysInWindow / (kWrites - 1) / kGroup;  // the counter is one key
  const auto commit = [&](const Checked& tx) {
    const Version read_version = version - 1;
    for (const auto& read : tx.reads) conflicts += set.changed_since(read, {}, read_version);
    conflicts += set.changed_since(tx.range.begin, tx.range.end, read_version);
    for (const auto& write : tx.writes) set.add_point(write, version);
    if (++in_group == kGroup) {
      in_group = 0;
      ++version;
      if (version > window) set.forget_before(version - window, false);
    }
  };
  // Until the set's size is steady.
  for (std::size_t i = 0; i < kKeysInWindow; ++i) commit(transactions[next++ % kPrepared]);
  for (auto _ : state) commit(transactions[next++ % kPrepared]);
  state.counters["entries"] = static_cast<double>(set.size());
  state.counters["conflicts"] = static_cast<double>(conflicts) / static_cast<double>(next);
}
BENCHMARK(conflict_check)->Name("ConflictCheck");

// A transaction that has read a range in which many keys were written before it began, as at the head of a
// queue.
void range_check(benchmark::State& state) {
  ConflictSet set;
  const auto keys = static_cast<std::size_t>(state.range(0));
  SeededRng rng(7);
  for (std::size_t i = 0; i < keys; ++i)
    set.add_point(key("revs", fmt::format("document-{:08}", rng.below(100'000'000))),
                  1 + static_cast<Version>(i));
  const std::string begin = key("revs", ""), end = key("revs~", "");
  bool conflicts = false;
  for (auto _ : state) conflicts |= set.changed_since(begin, end, static_cast<Version>(keys));
  if (conflicts) state.SkipWithError("a false conflict");
}
BENCHMARK(range_check)->Name("RangeConflictCheck")->Arg(10'000)->Arg(1'000'000);

}  // namespace
}  // namespace divan::kv::embedded
