// run(): which errors lead to another try, and what happens once however many tries there are.
#include <future>

#include "divan/kv/conformance/conformance.h"
#include "divan/kv/forwarding.h"
#include "divan/kv/lossy_testing.h"
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

// What run() does, in the parts that do not block where the engine can.
TEST_P(Conformance, StartedCommitsAreTriedAgain) {
  const auto tx = db.begin();
  int tries = 0;
  int callbacks = 0;
  for (bool committed = false; !committed;) {
    try {
      tx->get("a");
      tx->set("z", std::to_string(++tries));
      tx->after_commit([&] { ++callbacks; });
      if (tries <= 2) set("a", std::to_string(tries));
      std::promise<void> done;
      if (tx->start_commit([&] { done.set_value(); })) {
        EXPECT_THROW(tx->get("a"), Error) << "during the commit";
        done.get_future().wait();
      }
      tx->commit();
      committed = true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_committed);
      clock_.sleep(tx->start_retry(error));
      tx->restart();
    }
  }
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(callbacks, 1);
  EXPECT_GT(tx->committed_version(), 0);
  EXPECT_EQ(stored(), "a=2 z=3 ");
}

TEST_P(Conformance, StartRetryThrowsErrorsThatAreNotRetryable) {
  const auto tx = db.begin();
  EXPECT_THROW(tx->start_retry(Error(ErrorCode::io_error)), Error);
}

// A sleep ends at once and advances the time.
class SleeplessClock final : public Clock {
 public:
  MonotonicTime now() const override { return base_.now(); }
  std::int64_t wall_ms() const override { return base_.wall_ms(); }
  bool wait_until(std::unique_lock<Mutex>&, ConditionVariable&, MonotonicTime deadline,
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
  for (const auto code :
       {ErrorCode::io_error, ErrorCode::key_too_large, ErrorCode::transaction_too_large,
        ErrorCode::used_during_commit, ErrorCode::accessed_unreadable, ErrorCode::transaction_cancelled,
        ErrorCode::too_many_watches, ErrorCode::commit_unknown_result}) {
    EXPECT_EQ(code_of([&] { tx->on_error(Error(code)); }), code);
    tx->reset();
  }
  for (const auto code : {ErrorCode::not_committed, ErrorCode::transaction_too_old}) {
    tx->set("a", "1");
    tx->after_commit([] { ADD_FAILURE() << "of an abandoned try"; });
    tx->on_error(Error(code));
    EXPECT_TRUE(tx->read_only());
    tx->commit();
    tx->reset();
  }
}

// The tries of a transaction that fails with `error` each time.
int tries_until_timed_out(Database& database, ErrorCode error) {
  int tries = 0;
  EXPECT_EQ(code_of([&] {
              database.run([&](Transaction&) {
                ++tries;
                throw Error(error);
              });
            }),
            ErrorCode::transaction_timed_out);
  return tries;
}

TEST_P(Conformance, RetriesHaveAnEnd) {
  DIVAN_NEEDS_INJECTED_TIME();
  SleeplessClock clock;
  const auto store = GetParam().make(clock, kMaxWatches);
  EXPECT_EQ(tries_until_timed_out(store->database(), ErrorCode::not_committed), kMaxAttempts);
  EXPECT_EQ(tries_until_timed_out(store->database(), ErrorCode::transaction_too_old), kMaxAttempts / 20);
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

using testing::LossyStore;
using enum LossyStore::Fate;

std::int64_t counted(Database& db) {
  return db.run([](Transaction& tx) { return decode_counter(tx.get("n")); });
}

std::size_t commit_records(Database& db) {
  return db.run(
      [](Transaction& tx) { return tx.get_range(tuple::range({tuple::String{"txid"}})).rows.size(); });
}

std::string name_of(const CommitOutcome& outcome) {
  return outcome.committed() ? "committed " : outcome.unknown() ? "unknown " : "refused ";
}

TEST_P(Conformance, ALostResponseMakesNothingHappenTwice) {
  struct Course {
    std::deque<LossyStore::Fate> fates;  // commits of tries and of transactions that settle them, in turn
    int tries;
  };
  const std::vector<Course> courses = {
      {{answered}, 1},
      {{lost_after_commit}, 1},
      {{lost_before_commit}, 2},
      {{late}, 2},
      {{lost_before_commit, answered, lost_after_commit}, 2},
      {{late, answered, late, answered}, 3},
      {{lost_before_commit, lost_before_commit, lost_after_commit}, 2},
      {{late, late, late}, 2},
  };
  for (const auto& [fates, expected_tries] : courses) {
    db.run([](Transaction& tx) { tx.clear_range("", "\xff"); });
    LossyStore lossy(db);
    lossy.fates = fates;
    int tries = 0;
    std::string outcomes;
    const int answer = lossy.run([&](Transaction& tx) {
      tx.add("n", 1);
      tx.on_outcome([&](const CommitOutcome& outcome) { outcomes += name_of(outcome); });
      return ++tries;
    });
    EXPECT_EQ(tries, expected_tries);
    EXPECT_EQ(answer, tries);
    std::string expected;
    for (int i = 1; i < tries; ++i) expected += "refused ";
    EXPECT_EQ(outcomes, expected + "committed ");
    lossy.deliver();
    EXPECT_EQ(counted(db), 1);
    EXPECT_EQ(commit_records(db), 1u);
  }
}

// The store makes the commit while it is being settled, before the commit that would have it refused.
TEST_P(Conformance, ACommitThatArrivesWhileItIsSettledIsFound) {
  LossyStore lossy(db);
  lossy.fates = {late};
  const auto tx = lossy.begin();
  tx->add("n", 1);
  int made = 0;
  Version version = -1;
  tx->on_outcome([&](const CommitOutcome& outcome) { version = outcome.version(); });
  lossy.before_commit = [&] { lossy.before_commit = [&] { made = lossy.deliver(); }; };
  tx->commit();
  EXPECT_EQ(made, 1);
  EXPECT_EQ(counted(db), 1);
  EXPECT_GT(version, 0);
  EXPECT_LE(version, db.begin()->read_version());
  EXPECT_EQ(tx->committed_version(), version);
  EXPECT_EQ(tx->versionstamp().size(), 10u);
}

TEST_P(Conformance, ALostResponseAndThenAConflict) {
  LossyStore lossy(db);
  lossy.fates = {lost_before_commit};
  int tries = 0;
  lossy.run([&](Transaction& tx) {
    tx.get("a");
    tx.add("n", 1);
    if (++tries == 2) set("a", "changed");
  });
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(counted(db), 1);
}

TEST_P(Conformance, ACommitIsSettledWhenTheStoreRespondsAgain) {
  LossyStore lossy(db);
  lossy.fates = {lost_after_commit};
  int tries = 0;
  lossy.run([&](Transaction& tx) {
    tx.add("n", 1);
    ++tries;
    lossy.failing_gets = 3;
  });
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(counted(db), 1);
}

// Its record may have been cleared by then.
TEST_P(Conformance, ACommitThatCannotBeSettledStaysUnknownAndIsNotTriedAgain) {
  LossyStore lossy(db);
  lossy.fates = {late};
  int tries = 0;
  std::string outcomes;
  lossy.before_commit = [&] { db.advance_version(db.begin()->read_version() + 601'000'000); };
  EXPECT_EQ(code_of([&] {
              lossy.run([&](Transaction& tx) {
                tx.add("n", 1);
                ++tries;
                tx.on_outcome([&](const CommitOutcome& outcome) { outcomes += name_of(outcome); });
              });
            }),
            ErrorCode::commit_unknown_result);
  EXPECT_EQ(tries, 1);
  EXPECT_EQ(outcomes, "unknown ");
}

TEST_P(Conformance, OutcomesOfWhatIsNotCommitted) {
  std::string outcomes;
  const auto note = [&](const CommitOutcome& outcome) {
    EXPECT_EQ(outcome.version(), -1);
    outcomes += name_of(outcome);
  };
  const auto tx = db.begin();
  tx->on_outcome(note);
  tx->reset();
  EXPECT_EQ(outcomes, "refused ");
  tx->on_outcome(note);
  tx->on_error(Error(ErrorCode::not_committed));
  EXPECT_EQ(outcomes, "refused refused ");
  {
    const auto abandoned = db.begin();
    abandoned->set("a", "1");
    abandoned->on_outcome(note);
  }
  EXPECT_EQ(outcomes, "refused refused refused ");
  tx->get("a");
  tx->set("b", "1");
  set("a", "2");
  tx->on_outcome(note);
  EXPECT_EQ(code_of([&] { tx->commit(); }), ErrorCode::not_committed);
  tx->reset();
  EXPECT_EQ(outcomes, "refused refused refused refused ");
  // What only reads is committed without a version.
  tx->get("a");
  tx->on_outcome(note);
  tx->commit();
  tx->reset();
  EXPECT_EQ(outcomes, "refused refused refused refused committed ");
}

// The store fails in the same way as in a commit that may have been made.
TEST_P(Conformance, ACommitThatIsNeverSentIsRefused) {
  class Unsent final : public ForwardingTransaction {
   public:
    using ForwardingTransaction::ForwardingTransaction;
    Version read_version() override { throw Error(ErrorCode::io_error); }

   protected:
    std::string new_commit_record_id() override { return "id"; }
  };
  std::string outcomes;
  {
    Unsent tx(db.begin());
    tx.set("a", "1");
    tx.on_outcome([&](const CommitOutcome& outcome) { outcomes += name_of(outcome); });
    EXPECT_EQ(code_of([&] { tx.commit(); }), ErrorCode::io_error);
  }
  EXPECT_EQ(outcomes, "refused ");
  EXPECT_EQ(stored(), "");
}

TEST_P(Conformance, AnOutcomeHasTheVersionOfTheCommit) {
  CommitOutcome outcome;
  Version version = -1;
  db.run([&](Transaction& tx) {
    tx.set("a", "1");
    version = tx.read_version();
    tx.on_outcome([&](const CommitOutcome& settled) { outcome = settled; });
  });
  EXPECT_TRUE(outcome.committed());
  EXPECT_GT(outcome.version(), version);
}

TEST_P(Conformance, ASlotBelongsToOneTryOfOneTransactionAndToItsOwner) {
  const auto tx = db.begin();
  int& number = tx->slot<int>();
  number = 1;
  tx->slot<std::string>() = "one";
  const int owner = 0;
  tx->slot<int>(&owner) = 2;
  EXPECT_EQ(tx->slot<int>(), 1);
  EXPECT_EQ(tx->slot<std::string>(), "one");
  EXPECT_EQ(tx->slot<int>(&owner), 2);
  EXPECT_EQ(db.begin()->slot<int>(), 0);
  int seen = 0;
  tx->after_commit([&] { seen = number; });
  tx->commit();
  EXPECT_EQ(seen, 1) << "what callbacks use is still there";
  tx->reset();
  EXPECT_EQ(tx->slot<int>(), 0);
}

TEST_P(Conformance, OnlyWritesAddCommitRecordsAndOnlyWhereResponsesCanBeLost) {
  LossyStore lossy(db);
  lossy.run([](Transaction& tx) { tx.get("a"); });
  EXPECT_EQ(commit_records(db), 0u);
  db.run([](Transaction& tx) { tx.set("a", "1"); });
  EXPECT_EQ(commit_records(db), 0u);
  lossy.run([](Transaction& tx) { tx.set("a", "2"); });
  EXPECT_EQ(commit_records(db), 1u);
}

TEST_P(Conformance, OldCommitRecordsAreCleared) {
  LossyStore lossy(db);
  lossy.run([](Transaction& tx) { tx.set("a", "1"); });
  db.advance_version(db.begin()->read_version() + 2 * 600'000'000);  // twenty minutes, as FoundationDB counts
  lossy.run([](Transaction& tx) { tx.set("a", "2"); });
  EXPECT_EQ(commit_records(db), 1u);
  // Records that may still be read are kept.
  db.advance_version(db.begin()->read_version() + 300'000'000);
  lossy.run([](Transaction& tx) { tx.set("a", "3"); });
  EXPECT_EQ(commit_records(db), 2u);
}

}  // namespace
}  // namespace divan::kv::conformance
