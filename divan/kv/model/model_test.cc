// The same random transactions, open side by side, on the embedded engine and on the reference: every answer
// and every outcome must be the same.
#include <gtest/gtest.h>

#include <cstdlib>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/model/program.h"
#include "divan/kv/reference/reference.h"

namespace divan::kv::model {
namespace {

constexpr std::uint64_t kHistoriesOfAStore = 100;

// A transaction on both engines.
class Pair {
 public:
  Pair(Database& a, Database& b) : a_(a.begin()), b_(b.begin()) {}

  // What both answer, or both answers.
  template <class Fn>
  std::string both(Fn&& fn) {
    const std::string a = fn(*a_), b = fn(*b_);
    return a == b ? a : "DIFFERENT: " + a + " AND " + b;
  }
  std::pair<std::shared_ptr<Watch>, std::shared_ptr<Watch>> watch(const std::string& key) {
    return {a_->watch(key), b_->watch(key)};
  }
  void reset() { a_->reset(), b_->reset(); }

 private:
  std::unique_ptr<Transaction> a_, b_;
};

struct Stores {
  SystemClock clock;
  SystemRng rng;
  embedded::TemporaryStore embedded;
  reference::ReferenceDatabase reference{clock, rng};
};

// One history; answers its lines, the last of which begins with DIFFERENT if it went wrong.
std::vector<std::string> run_history(Stores& stores, std::uint64_t seed) {
  SeededRng rng(seed);
  std::vector<std::string> lines;
  std::vector<std::pair<std::shared_ptr<Watch>, std::shared_ptr<Watch>>> watches;
  for (Database* database :
       {static_cast<Database*>(&*stores.embedded), static_cast<Database*>(&stores.reference)}) {
    database->run([](Transaction& tx) { tx.clear_range("", "\xff"); });
  }
  std::vector<Pair> open;
  for (int i = 0; i < 3; ++i) open.emplace_back(*stores.embedded, stores.reference);
  const auto note = [&](std::size_t number, const std::string& what, const std::string& answer) {
    lines.push_back(fmt::format("{}{}: {} -> {}", answer.starts_with("DIFFERENT") ? "DIFFERENT " : "", number,
                                what, answer));
    return !answer.starts_with("DIFFERENT");
  };
  for (int step = 0; step < 40; ++step) {
    const std::size_t number = rng.below(open.size());
    Pair& pair = open[number];
    const auto choice = rng.below(12);
    if (choice == 0) {
      const auto outcome = pair.both([](Transaction& tx) {
        const auto answer = commit(tx);
        return fmt::format("{} at {}", answer, tx.committed_version());
      });
      if (!note(number, "commit", outcome)) return lines;
      pair.reset();
    } else if (choice == 1 && rng.below(4) == 0) {
      pair.reset();
      note(number, "reset", "");
    } else if (choice == 2) {
      try {
        watches.push_back(pair.watch("a"));
        note(number, "watch", "");
      } catch (const Error& error) { note(number, "watch", std::string(error.name())); }
    } else {
      const auto operation = random_operation(rng);
      const auto answer = pair.both([&](Transaction& tx) { return perform(tx, operation); });
      if (!note(number, describe(operation), answer)) return lines;
    }
  }
  open.clear();
  if (contents(*stores.embedded) != contents(stores.reference)) {
    lines.push_back("DIFFERENT contents: " + contents(*stores.embedded) + " AND " +
                    contents(stores.reference));
    return lines;
  }
  // Watches fire after their commit is acknowledged, and before the next one is.
  stores.embedded->run([](Transaction& tx) { tx.set("zz", "flush"); });
  stores.reference.run([](Transaction& tx) { tx.set("zz", "flush"); });
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const auto& [a, b] = watches[i];
    if (a->fired() != b->fired() || a->cancelled() != b->cancelled()) {
      lines.push_back(fmt::format("DIFFERENT watch {}: fired {}, {} cancelled {}, {}", i, a->fired(),
                                  b->fired(), a->cancelled(), b->cancelled()));
    }
  }
  return lines;
}

TEST(KvModel, InterleavedTransactionsAnswerAsOnTheReference) {
  const char* const chosen = std::getenv("DIVAN_SEED");
  const char* const is_long = std::getenv("DIVAN_LONG");
  const std::uint64_t histories = is_long != nullptr && *is_long == '1' ? 60'000 : 3'000;
  const std::uint64_t first = chosen ? std::strtoull(chosen, nullptr, 10) : SystemRng().next() >> 24;
  std::map<std::string, int> outcomes;
  std::unique_ptr<Stores> stores;
  for (std::uint64_t i = 0; i < (chosen ? 1 : histories); ++i) {
    if (i % kHistoriesOfAStore == 0) stores = std::make_unique<Stores>();
    const auto lines = run_history(*stores, first + i);
    if (lines.back().starts_with("DIFFERENT")) {
      std::string all;
      for (const auto& line : lines) all += line + "\n";
      FAIL() << "DIVAN_SEED=" << first + i << " repeats it.\n" << all;
    }
    for (const auto& line : lines) {
      if (line.find("commit ->") != std::string::npos) ++outcomes[line.substr(line.find("->") + 3, 9)];
    }
  }
  // Enough of both happened to mean something.
  if (!chosen) {
    EXPECT_GT(outcomes["committed"], static_cast<int>(histories / 2));
    EXPECT_GT(outcomes["not_commi"], static_cast<int>(histories / 20));
  }
}

}  // namespace
}  // namespace divan::kv::model
