// The same random transactions, open side by side, on the embedded engine and on the reference: every answer
// and every outcome must be the same, and what each engine did strictly serializable.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "divan/base/bytes.h"
#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/model/history.h"
#include "divan/kv/reference/reference.h"

namespace divan::kv::model {
namespace {

constexpr std::uint64_t kHistoriesOfAStore = 100;
constexpr std::size_t kOpen = 3;  // transactions at a time
constexpr int kSteps = 40;

struct Stores {
  ManualClock clock{0};  // versions begin with the clock
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
    if (choice < 5) step.kind = Step::Kind::commit;
    if (choice == 5) step.kind = Step::Kind::reset;
    if (choice == 6) step.kind = Step::Kind::pass_time;
    if (choice >= 7 && choice < 10) step.kind = Step::Kind::watch;
    if (step.kind == Step::Kind::watch) step.operation.begin = random_key(rng);
    step.time = std::chrono::milliseconds(rng.below(4'000));
  }
  return steps;
}

Operation initial(Operation::Kind kind, std::string key, std::string end_or_value) {
  Operation operation;
  operation.kind = kind;
  operation.begin = std::move(key);
  (kind == Operation::Kind::set ? operation.value : operation.end) = std::move(end_or_value);
  return operation;
}

// A transaction on one of the engines, and its part in that engine's history.
class Recorded {
 public:
  Recorded(Database& database, std::uint64_t moment) : tx_(database.begin()) { start(moment); }

  Transaction& tx() { return *tx_; }

  std::string perform(const Operation& operation) {
    done_.steps.push_back({operation, model::perform(*tx_, operation)});
    return done_.steps.back().answer;
  }

  std::string commit() {
    const auto answer = model::commit(*tx_);
    if (tx_->committed_version() < 0) return answer;
    const auto stamp = tx_->versionstamp();
    done_.version = tx_->committed_version();
    done_.order = read_u16(stamp.substr(8));
    return fmt::format("{} at {} {}", answer, *done_.version, to_hex(stamp));
  }

  // Begins again; what was done until then goes into the history.
  std::string reset(std::uint64_t moment, std::vector<Transacted>& history) {
    end(moment, history);
    tx_->reset();
    start(moment + 1);
    return fmt::format("reads {}", tx_->read_version());
  }

  void end(std::uint64_t moment, std::vector<Transacted>& history) {
    done_.ended = moment;
    history.push_back(std::exchange(done_, {}));
  }

 private:
  void start(std::uint64_t moment) {
    done_.began = moment;
    done_.read_version = tx_->read_version();
  }

  std::unique_ptr<Transaction> tx_;
  Transacted done_;
};

// A history on both engines, and what it was. Ends at the first step that they do differently.
class History {
 public:
  explicit History(Stores& stores) : sides_{Side{*stores.embedded}, Side{stores.reference}}, stores_(stores) {
    for (auto& side : sides_) {
      Recorded setup(side.database, next_moment());
      setup.perform(initial(Operation::Kind::clear_range, "", "\xff"));
      for (const auto* const key : {"a", "b", "d", "f", "fa", "h"}) {
        setup.perform(initial(Operation::Kind::set, key, "1"));
      }
      setup.commit();
      setup.end(next_moment(), side.history);
      for (std::size_t i = 0; i < kOpen; ++i) side.open.emplace_back(side.database, next_moment());
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
  struct Side {
    Database& database;
    std::vector<Recorded> open = {};
    std::vector<Transacted> history = {};
  };
  using Watches = std::array<std::shared_ptr<Watch>, 2>;

  std::uint64_t next_moment() { return moment_ += 2; }

  void note(const std::string& what, const std::string& embedded, const std::string& reference) {
    failed_ |= embedded != reference;
    lines_.push_back(embedded != reference
                         ? fmt::format("{} -> EMBEDDED {} REFERENCE {}", what, embedded, reference)
                         : fmt::format("{} -> {}", what, embedded));
  }

  template <class Fn>
  void on_both(const std::string& what, Fn&& fn) {
    const auto embedded = fn(sides_[0]), reference = fn(sides_[1]);
    note(what, embedded, reference);
  }

  template <class Fn>
  void in_both(const Step& step, const std::string& what, Fn&& fn) {
    on_both(fmt::format("{}: {}", step.number, what),
            [&](Side& side) { return fn(side, side.open[step.number]); });
  }

  void take(const Step& step) {
    switch (step.kind) {
      case Step::Kind::operation:
        return in_both(step, describe(step.operation),
                       [&](Side&, Recorded& recorded) { return recorded.perform(step.operation); });
      case Step::Kind::watch: return watch(step);
      case Step::Kind::commit:
        in_both(step, "commit", [](Side&, Recorded& recorded) { return recorded.commit(); });
        [[fallthrough]];
      case Step::Kind::reset:
        return in_both(step, "reset", [&, moment = next_moment()](Side& side, Recorded& recorded) {
          return recorded.reset(moment, side.history);
        });
      case Step::Kind::pass_time:
        stores_.clock.advance(step.time);
        lines_.push_back(fmt::format("{} ms pass", step.time / std::chrono::milliseconds(1)));
    }
  }

  void watch(const Step& step) {
    const std::string& key = step.operation.begin;
    Watches watches;
    in_both(step, "watch " + to_hex(key), [&](Side& side, Recorded& recorded) {
      return answer_of([&] {
        watches[&side == &sides_[0] ? 0 : 1] = recorded.tx().watch(key);
        return std::string("done");
      });
    });
    if (watches[0] && watches[1]) watches_.push_back(watches);
  }

  void finish() {
    on_both("contents", [](Side& side) { return contents(side.database); });
    // Both may be wrong alike.
    on_both("anomalies", [&, moment = next_moment()](Side& side) {
      for (auto& recorded : side.open) recorded.end(moment, side.history);
      const auto anomaly = find_anomaly(std::move(side.history), contents(side.database));
      failed_ |= anomaly.has_value();
      return anomaly.value_or("none");
    });
    // Watches fire after their commit is acknowledged, and before the next one is.
    for (auto& side : sides_) {
      side.open.clear();
      side.database.run([](Transaction& tx) { tx.add_write_conflict({"a", "b"}); });
    }
    const auto state = [](const Watch& watch) {
      return watch.fired() ? "fired" : watch.cancelled() ? "cancelled" : "waits";
    };
    for (const auto& watches : watches_) {
      if (!failed_) note("a watch", state(*watches[0]), state(*watches[1]));
    }
  }

  std::array<Side, 2> sides_;
  Stores& stores_;
  std::vector<Watches> watches_;
  std::vector<std::string> lines_;
  std::uint64_t moment_ = 0;
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
