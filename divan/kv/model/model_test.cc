// The same random transactions, open side by side, on the embedded engine and on the reference: every answer
// and every outcome must be the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "divan/base/bytes.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/model/program.h"
#include "divan/kv/reference/reference.h"

namespace divan::kv::model {
namespace {

constexpr std::uint64_t kHistoriesOfAStore = 100;
constexpr std::size_t kOpen = 3;  // transactions at a time
constexpr int kSteps = 40;

struct Stores {
  ManualClock clock;
  SystemRng rng;
  embedded::TemporaryStore embedded{&clock};
  reference::ReferenceDatabase reference{clock, rng};
};

struct Step {
  enum class Kind { operation, watch, commit, reset, pass_time };
  Kind kind = Kind::operation;
  std::size_t number = 0;  // of the transaction
  Operation operation;     // a watch has its key
  Duration time{};
};

std::vector<Step> random_steps(std::uint64_t seed) {
  SeededRng rng(seed);
  std::vector<Step> steps(kSteps);
  for (auto& step : steps) {
    step.number = rng.below(kOpen);
    step.operation = random_operation(rng);
    const auto choice = rng.below(48);
    if (choice < 4) step.kind = Step::Kind::commit;
    if (choice == 4) step.kind = Step::Kind::reset;
    if (choice == 5 || choice == 6) step.kind = Step::Kind::watch;
    if (choice == 7) step.kind = Step::Kind::pass_time;
    if (step.kind == Step::Kind::watch) step.operation.begin.key = random_key(rng);
    step.time = std::chrono::milliseconds(rng.below(4'000));
  }
  return steps;
}

// A history on both engines, and what it was. Ends at the first step that they do differently.
class History {
 public:
  explicit History(Stores& stores) : stores_(stores) {
    on_both([](Database& database) {
      database.run([](Transaction& tx) { tx.clear_range("", "\xff"); });
      return std::string();
    });
    for (std::size_t i = 0; i < kOpen; ++i) {
      open_.push_back({stores.embedded->begin(), stores.reference.begin()});
    }
  }

  void run(const std::vector<Step>& steps) {
    for (const auto& step : steps) {
      if (failed_) return;
      take(step);
    }
    if (!failed_) finish();
  }

  bool failed() const { return failed_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  struct Pair {
    std::unique_ptr<Transaction> embedded, reference;
  };
  using Watches = std::pair<std::shared_ptr<Watch>, std::shared_ptr<Watch>>;

  void note(const std::string& what, const std::string& embedded, const std::string& reference) {
    failed_ = embedded != reference;
    lines_.push_back(failed_ ? fmt::format("{} -> EMBEDDED {} REFERENCE {}", what, embedded, reference)
                             : fmt::format("{} -> {}", what, embedded));
  }

  template <class Fn>
  void on_both(Fn&& fn) {
    const auto embedded = fn(*stores_.embedded), reference = fn(stores_.reference);
    if (embedded != reference) note("", embedded, reference);
  }

  template <class Fn>
  void in_both(const Step& step, const std::string& what, Fn&& fn) {
    const Pair& pair = open_[step.number];
    const auto embedded = fn(*pair.embedded), reference = fn(*pair.reference);
    note(fmt::format("{}: {}", step.number, what), embedded, reference);
  }

  void take(const Step& step) {
    switch (step.kind) {
      case Step::Kind::operation:
        return in_both(step, describe(step.operation),
                       [&](Transaction& tx) { return perform(tx, step.operation); });
      case Step::Kind::watch: return watch(step);
      case Step::Kind::commit:
        in_both(step, "commit", [](Transaction& tx) {
          const auto answer = commit(tx);
          const auto version = tx.committed_version();
          return fmt::format("{} at {} {}", answer, version, version < 0 ? "" : to_hex(tx.versionstamp()));
        });
        [[fallthrough]];
      case Step::Kind::reset:
        return in_both(step, "reset", [](Transaction& tx) {
          tx.reset();
          return fmt::format("reads {}", tx.read_version());
        });
      case Step::Kind::pass_time:
        stores_.clock.advance(step.time);
        lines_.push_back(fmt::format("{} ms pass", step.time / std::chrono::milliseconds(1)));
    }
  }

  void watch(const Step& step) {
    const std::string& key = step.operation.begin.key;
    Watches watches;
    in_both(step, "watch " + to_hex(key), [&](Transaction& tx) {
      return answer_of([&] {
        (&tx == open_[step.number].embedded.get() ? watches.first : watches.second) = tx.watch(key);
        return std::string("done");
      });
    });
    if (watches.first && watches.second) watches_.push_back(watches);
  }

  void finish() {
    open_.clear();
    note("contents", contents(*stores_.embedded), contents(stores_.reference));
    // Watches fire after their commit is acknowledged, and before the next one is.
    on_both([](Database& database) {
      database.run([](Transaction& tx) { tx.add_write_conflict({"a", "b"}); });
      return std::string();
    });
    const auto state = [](const Watch& watch) {
      return watch.fired() ? "fired" : watch.cancelled() ? "cancelled" : "waits";
    };
    for (const auto& [embedded, reference] : watches_) {
      if (!failed_) note("a watch", state(*embedded), state(*reference));
    }
  }

  Stores& stores_;
  std::vector<Pair> open_;
  std::vector<Watches> watches_;
  std::vector<std::string> lines_;
  bool failed_ = false;
};

std::optional<std::vector<std::string>> failure_of(const std::vector<Step>& steps) {
  Stores stores;
  History history(stores);
  history.run(steps);
  return history.failed() ? std::optional(history.lines()) : std::nullopt;
}

// The fewest of the steps that still fail on new stores, as far as leaving out parts leads there.
std::optional<std::vector<std::string>> shrunk_failure_of(std::vector<Step> steps) {
  auto failure = failure_of(steps);
  if (!failure) return failure;
  for (std::size_t size = steps.size() / 2; size > 0; size /= 2) {
    for (std::size_t at = 0; at < steps.size();) {
      auto fewer = steps;
      const auto first = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      fewer.erase(first, first + static_cast<std::ptrdiff_t>(std::min(size, steps.size() - at)));
      if (auto still = failure_of(fewer)) {
        failure = std::move(still);
        steps = std::move(fewer);
      } else {
        at += size;
      }
    }
  }
  return failure;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

TEST(KvModel, InterleavedTransactionsAnswerAsOnTheReference) {
  const auto range = seeds(3'000, 60'000, 1);
  std::map<std::string, std::uint64_t> outcomes;
  std::unique_ptr<Stores> stores;
  for (std::uint64_t i = 0; i < range.count; ++i) {
    if (i % kHistoriesOfAStore == 0) stores = std::make_unique<Stores>();
    const auto steps = random_steps(range.at(i));
    History history(*stores);
    history.run(steps);
    if (history.failed()) {
      FAIL() << "DIVAN_SEED=" << range.at(i) << " repeats it.\n"
             << joined(history.lines()) << "\nShorter:\n"
             << joined(shrunk_failure_of(steps).value_or(
                    std::vector<std::string>{"It does not fail on new stores."}));
    }
    for (const auto& line : history.lines()) {
      const auto at = line.find("commit -> ");
      if (at != std::string::npos) ++outcomes[line.substr(at + 10, 12)];
    }
  }
  // Enough of all happened to mean something.
  if (range.is_chosen) return;
  EXPECT_GT(outcomes["committed at"], range.count / 2);
  EXPECT_GT(outcomes["not_committe"], range.count / 20);
  EXPECT_GT(outcomes["transaction_"], range.count / 100);
}

}  // namespace
}  // namespace divan::kv::model
