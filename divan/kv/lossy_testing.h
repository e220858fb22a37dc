// A store that loses the responses to commits, for the tests of every module.
#pragma once

#include <deque>
#include <vector>

#include "divan/kv/forwarding.h"

namespace divan::kv::testing {

/// Not thread-safe while it has fates.
class LossyStore final : public ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;

  enum class Fate {
    answered,
    lost_after_commit,
    lost_before_commit,
    late,  // the response is lost, and deliver() commits
  };
  /// The fates of the next commits of writes, including those that settle others; later ones are answered.
  std::deque<Fate> fates;
  /// Commits of writes so far.
  int commits = 0;
  /// Called once, before the next commit of writes.
  std::function<void()> before_commit;
  /// So many of the next reads of single keys fail.
  int failing_gets = 0;

  std::unique_ptr<Transaction> begin() override { return std::make_unique<Lossy>(*this, inner().begin()); }

  /// The late commits reach the store. Returns how many of them it makes.
  int deliver() {
    int made = 0;
    for (const auto& tx : std::exchange(late_, {})) {
      try {
        tx->commit();
        ++made;
      } catch (const Error&) {}
    }
    return made;
  }

 private:
  class Lossy final : public ForwardingTransaction {
   public:
    Lossy(LossyStore& store, std::unique_ptr<Transaction> inner)
        : ForwardingTransaction(std::move(inner)), store_(store) {}

    std::optional<std::string> get(std::string_view key, Isolation isolation) override {
      if (store_.failing_gets > 0 && --store_.failing_gets >= 0) throw Error(ErrorCode::transaction_too_old);
      return ForwardingTransaction::get(key, isolation);
    }
    // Without a pause, for tests whose clocks stand still.
    void on_error(const Error& error) override {
      if (!error.retryable()) throw error;
      reset();
    }

   protected:
    std::string do_commit() override {
      if (read_only()) return ForwardingTransaction::do_commit();
      ++store_.commits;
      if (const auto callback = std::exchange(store_.before_commit, nullptr)) callback();
      const Fate fate = store_.next_fate();
      if (fate == Fate::late) store_.late_.push_back(take_inner(store_.inner().begin()));
      std::string stamp;
      if (fate == Fate::answered || fate == Fate::lost_after_commit)
        stamp = ForwardingTransaction::do_commit();
      if (fate != Fate::answered) throw Error(ErrorCode::commit_unknown_result);
      return stamp;
    }
    std::string new_commit_record_id() override { return std::string("\0id", 3) + store_.next_id_++; }
    std::unique_ptr<Transaction> begin_settling() override { return store_.begin(); }

   private:
    LossyStore& store_;
  };

  Fate next_fate() {
    if (fates.empty()) return Fate::answered;
    const Fate fate = fates.front();
    fates.pop_front();
    return fate;
  }

  std::vector<std::unique_ptr<Transaction>> late_;
  char next_id_ = 'a';
};

}  // namespace divan::kv::testing
