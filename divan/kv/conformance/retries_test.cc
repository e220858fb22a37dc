// run(): what is tried again, and what happens once however often it is.
#include "divan/kv/conformance/conformance.h"
#include "divan/kv/forwarding.h"
#include "divan/kv/tuple.h"

namespace divan::kv::conformance {
namespace {

TEST_P(Conformance, RunTriesAgainAfterAConflict) {
  int tries = 0;
  int callbacks = 0;
  const int answer = db.run([&](Transaction& tx) {
    tx.get("a");
    tx.set("z", std::to_string(++tries));
    tx.after_commit([&] { ++callbacks; });
    if (tries <= 2) set("a", std::to_string(tries));
    return tries;
  });
  EXPECT_EQ(answer, 3);
  EXPECT_EQ(callbacks, 1);
  EXPECT_EQ(stored(), "a=2 z=3 ");
}

// Whoever sleeps has slept: time goes on by itself.
class SleeplessClock final : public Clock {
 public:
  MonotonicTime now() const override { return base_.now(); }
  std::int64_t wall_ms() const override { return base_.wall_ms(); }
  bool wait_until(std::unique_lock<std::mutex>&, std::condition_variable&, MonotonicTime deadline,
                  const std::function<bool()>& done) const override {
    if (!done() && deadline > base_.now()) base_.advance(deadline - base_.now());
    return done();
  }
  void advance(Duration by) { base_.advance(by); }

 private:
  mutable ManualClock base_;
};

TEST_P(Conformance, RunTriesAgainWithAYoungTransaction) {
  DIVAN_NEEDS_INJECTED_TIME();
  SleeplessClock clock;
  const auto store = GetParam().make(clock, kMaxWatches);
  int tries = 0;
  store->database().run([&](Transaction& tx) {
    if (++tries == 1) clock.advance(kTransactionLifetime + std::chrono::seconds(1));
    tx.get("a");
    tx.set("b", "1");
  });
  EXPECT_EQ(tries, 2);
}

TEST_P(Conformance, OtherErrorsGoThroughRunAndWriteNothing) {
  int tries = 0;
  EXPECT_THROW(db.run([&](Transaction& tx) {
    tx.set("a", "1");
    ++tries;
    throw std::runtime_error("of the caller");
  }),
               std::runtime_error);
  EXPECT_EQ(code_of([&] {
              db.run([&](Transaction& tx) {
                ++tries;
                tx.set("\xff", "");
              });
            }),
            ErrorCode::key_outside_legal_range);
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(stored(), "");
}

TEST_P(Conformance, OnErrorThrowsWhatNoRetryHelps) {
  const auto tx = db.begin();
  tx->set("a", "1");
  for (const auto code : {ErrorCode::io_error, ErrorCode::key_too_large, ErrorCode::transaction_too_large,
                          ErrorCode::used_during_commit, ErrorCode::accessed_unreadable,
                          ErrorCode::transaction_cancelled, ErrorCode::too_many_watches}) {
    EXPECT_EQ(code_of([&] { tx->on_error(Error(code)); }), code);
    tx->reset();
  }
  for (const auto code :
       {ErrorCode::not_committed, ErrorCode::transaction_too_old, ErrorCode::commit_unknown_result}) {
    tx->set("a", "1");
    tx->after_commit([] { ADD_FAILURE() << "of a try that was given up"; });
    tx->on_error(Error(code));
    EXPECT_TRUE(tx->read_only());
    tx->commit();
    tx->reset();
  }
}

TEST_P(Conformance, RetriesHaveAnEnd) {
  DIVAN_NEEDS_INJECTED_TIME();
  SleeplessClock clock;
  const auto store = GetParam().make(clock, kMaxWatches);
  int tries = 0;
  EXPECT_EQ(code_of([&] {
              store->database().run([&](Transaction&) {
                ++tries;
                throw Error(ErrorCode::not_committed);
              });
            }),
            ErrorCode::transaction_timed_out);
  EXPECT_EQ(tries, kMaxAttempts);
}

TEST_P(Conformance, OnlyAResetGivesBackTheTries) {
  DIVAN_NEEDS_INJECTED_TIME();
  SleeplessClock clock;
  const auto store = GetParam().make(clock, kMaxWatches);
  const auto tx = store->database().begin();
  for (int i = 0; i < 2 * kMaxAttempts; ++i) {
    tx->on_error(Error(ErrorCode::not_committed));
    if (i % 100 == 0) tx->reset();
  }
  tx->reset();
  for (int i = 1; i < kMaxAttempts; ++i) tx->on_error(Error(ErrorCode::not_committed));
  tx->set("a", "1");
  EXPECT_EQ(code_of([&] { tx->on_error(Error(ErrorCode::not_committed)); }),
            ErrorCode::transaction_timed_out);
  expect_only_a_reset_is_left(*tx);
}

TEST_P(Conformance, TriesCountInATransactionThatPassesOn) {
  DIVAN_NEEDS_INJECTED_TIME();
  SleeplessClock clock;
  const auto store = GetParam().make(clock, kMaxWatches);
  ForwardingTransaction tx(store->database().begin());
  for (int i = 1; i < kMaxAttempts; ++i) tx.on_error(Error(ErrorCode::not_committed));
  EXPECT_EQ(code_of([&] { tx.on_error(Error(ErrorCode::not_committed)); }), ErrorCode::transaction_timed_out);
  tx.reset();
  tx.on_error(Error(ErrorCode::not_committed));
}

TEST_P(Conformance, CallbacksRunInOrderAfterTheCommitAndMayCommitThemselves) {
  std::string order;
  db.run([&](Transaction& tx) {
    tx.set("a", "1");
    tx.after_commit([&] { order += get("a"), set("b", "2"); });
    tx.after_commit([&] { order += "!"; });
    order += "0";
  });
  EXPECT_EQ(order, "01!");
  EXPECT_EQ(get("b"), "2");
}

// A store some of whose answers to commits are lost, after the commit or before it.
class LossyDatabase final : public ForwardingDatabase {
 public:
  enum class Fate { answered, lost_after_commit, lost_before_commit };

  LossyDatabase(Database& inner, std::vector<Fate> fates)
      : ForwardingDatabase(inner), fates_(std::move(fates)) {}

  std::unique_ptr<Transaction> begin() override {
    return std::make_unique<LossyTransaction>(*this, inner().begin());
  }
  std::optional<std::string> new_transaction_id() override { return std::string("\0id", 3) + id_++; }

  /// The reads of single keys that follow fail, so many of them.
  void fail_gets(int count) { failing_gets_ = count; }

  std::size_t marks() {
    return inner().run(
        [](Transaction& tx) { return tx.get_range(tuple::range({tuple::String{"txid"}})).rows.size(); });
  }

 private:
  class LossyTransaction final : public ForwardingTransaction {
   public:
    LossyTransaction(LossyDatabase& database, std::unique_ptr<Transaction> inner)
        : ForwardingTransaction(std::move(inner)), database_(database) {}

    std::optional<std::string> get(std::string_view key, Isolation isolation) override {
      if (database_.failing_gets_ > 0) {
        --database_.failing_gets_;
        throw Error(ErrorCode::transaction_too_old);
      }
      return ForwardingTransaction::get(key, isolation);
    }

   protected:
    void do_commit() override {
      const Fate fate = database_.next_fate();
      if (fate != Fate::lost_before_commit) inner().commit();
      if (fate != Fate::answered) throw Error(ErrorCode::commit_unknown_result);
    }

   private:
    LossyDatabase& database_;
  };

  Fate next_fate() { return commits_ < fates_.size() ? fates_[commits_++] : Fate::answered; }

  std::vector<Fate> fates_;
  std::size_t commits_ = 0;
  int failing_gets_ = 0;
  char id_ = 'a';
};

TEST_P(Conformance, ALostAnswerMakesNothingHappenTwice) {
  using enum LossyDatabase::Fate;
  const std::vector<std::vector<LossyDatabase::Fate>> courses = {
      {lost_after_commit},
      {lost_before_commit},
      {lost_before_commit, lost_after_commit},
      {lost_before_commit, lost_before_commit, answered},
      {answered},
  };
  for (const auto& fates : courses) {
    db.run([](Transaction& tx) { tx.clear_range("", "\xff"); });
    LossyDatabase lossy(db, fates);
    int tries = 0, callbacks = 0;
    const int answer = lossy.run([&](Transaction& tx) {
      tx.add("n", 1);
      const int number = ++tries;
      tx.after_commit([&, number] { callbacks += number; });
      return number;
    });
    EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("n")); }), 1);
    EXPECT_EQ(answer, tries);
    EXPECT_EQ(callbacks, tries);
    EXPECT_EQ(lossy.marks(), 1u);
  }
}

TEST_P(Conformance, ALostAnswerAndThenAConflict) {
  using enum LossyDatabase::Fate;
  LossyDatabase lossy(db, {lost_before_commit});
  int tries = 0;
  lossy.run([&](Transaction& tx) {
    tx.get("a");
    tx.add("n", 1);
    if (++tries == 2) set("a", "changed");
  });
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("n")); }), 1);
}

TEST_P(Conformance, ALostAnswerIsLookedForUntilTheStoreAnswers) {
  using enum LossyDatabase::Fate;
  LossyDatabase lossy(db, {lost_after_commit});
  int tries = 0;
  lossy.run([&](Transaction& tx) {
    tx.add("n", 1);
    ++tries;
    lossy.fail_gets(3);
  });
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(db.run([](Transaction& tx) { return decode_counter(tx.get("n")); }), 1);
}

TEST_P(Conformance, OnlyWritesLeaveMarksAndOnlyWhereAnswersCanBeLost) {
  LossyDatabase lossy(db, {});
  lossy.run([](Transaction& tx) { tx.get("a"); });
  EXPECT_EQ(lossy.marks(), 0u);
  db.run([](Transaction& tx) { tx.set("a", "1"); });
  EXPECT_EQ(lossy.marks(), 0u);
  lossy.run([](Transaction& tx) { tx.set("a", "2"); });
  EXPECT_EQ(lossy.marks(), 1u);
}

TEST_P(Conformance, OldMarksAreCleared) {
  LossyDatabase lossy(db, {});
  lossy.run([](Transaction& tx) { tx.set("a", "1"); });
  db.advance_version(db.begin()->read_version() + 2 * 3'600'000'000);  // two hours, as FoundationDB counts
  lossy.run([](Transaction& tx) { tx.set("a", "2"); });
  EXPECT_EQ(lossy.marks(), 1u);
  // Not those that somebody may look for yet.
  db.advance_version(db.begin()->read_version() + 600'000'000);
  lossy.run([](Transaction& tx) { tx.set("a", "3"); });
  EXPECT_EQ(lossy.marks(), 2u);
}

}  // namespace
}  // namespace divan::kv::conformance
