// A store that counts the waits that a remote one would cause. For the tests of modules that prefetch.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <gmock/gmock.h>

#include <atomic>
#include <vector>

#include "divan/kv/embedded/temporary_store.h"
#include "divan/kv/fdb/temporary_store.h"
#include "divan/kv/forwarding.h"

namespace divan::kv::testing {

/// Its waits are those of kv/fdb: for a read that was not prefetched, for the first of those that were
/// prefetched together, for a commit of writes. Thread-safe.
class RemoteStore final : public ForwardingDatabase {
 public:
  using ForwardingDatabase::ForwardingDatabase;
  std::unique_ptr<Transaction> begin() override { return std::make_unique<Remote>(inner().begin(), *this); }

  std::atomic<int> round_trips = 0;

 private:
  class Remote final : public ForwardingTransaction {
   public:
    Remote(std::unique_ptr<Transaction> transaction, RemoteStore& store)
        : ForwardingTransaction(std::move(transaction)), store_(store) {}

    bool is_remote() const override { return true; }
    void prefetch(const Prefetch& reads) override {
      Wave wave;
      for (const auto& key : reads.keys) wave.keys.insert(key);
      for (const auto& [range, limit, reverse] : reads.ranges) {
        const auto page =
            inner().get_range(range, {.limit = limit, .reverse = reverse, .isolation = Isolation::snapshot});
        KeyRange covered = range;
        if (page.more)
          (reverse ? covered.begin : covered.end) =
              page.rows.back().key + (reverse ? "" : std::string(1, '\0'));
        wave.ranges.push_back(std::move(covered));
      }
      waves_.push_back(std::move(wave));
    }

    std::optional<std::string> get(std::string_view key, Isolation isolation) override {
      if (!waits_for(key)) wait();
      return inner().get(key, isolation);
    }
    std::vector<std::optional<std::string>> get_many(std::span<const std::string> keys,
                                                     Isolation isolation) override {
      bool missing = false;
      for (const auto& key : keys) missing = !waits_for(key) || missing;
      if (missing) wait();
      return inner().get_many(keys, isolation);
    }
    bool scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) override {
      const KeyRange* known = covering(range, options.reverse);
      if (known == nullptr) wait();
      return inner().scan(range, options, [&](std::string_view key, std::string_view value) {
        if (known != nullptr && !known->contains(key)) {
          wait();
          known = nullptr;
        }
        return visit(key, value);
      });
    }
    Version read_version() override {
      if (waves_.empty() && !has_waited_) wait();
      return inner().read_version();
    }

   protected:
    std::string do_commit() override {
      if (!read_only()) wait();
      return ForwardingTransaction::do_commit();
    }
    void do_reset() override {
      waves_.clear();
      has_waited_ = false;
      ForwardingTransaction::do_reset();
    }

   private:
    struct Wave {
      absl::flat_hash_set<std::string> keys;
      std::vector<KeyRange> ranges;
      bool has_come = false;
    };

    void wait() {
      ++store_.round_trips;
      has_waited_ = true;
    }
    void wait_for(Wave& wave) {
      if (!std::exchange(wave.has_come, true)) wait();
    }
    bool waits_for(std::string_view key) {
      for (auto& wave : waves_) {
        if (!wave.keys.contains(std::string(key))) continue;
        wait_for(wave);
        return true;
      }
      return false;
    }
    // What has been prefetched of the beginning of a scan.
    const KeyRange* covering(const KeyRange& scanned, bool reverse) {
      for (auto& wave : waves_) {
        for (const auto& range : wave.ranges) {
          const bool begins_here =
              reverse ? range.begin < scanned.end && scanned.end <= range.end : range.contains(scanned.begin);
          if (!begins_here) continue;
          wait_for(wave);
          return &range;
        }
      }
      return nullptr;
    }

    RemoteStore& store_;
    std::vector<Wave> waves_;
    bool has_waited_ = false;
  };
};

/// A store whose waits are counted: a cluster, if there is one, or an embedded store that claims to be
/// remote.
class CountedStore {
 public:
  CountedStore(bool on_cluster, const Clock& clock) {
    if (on_cluster) {
      cluster_.emplace(clock);
    } else {
      counting_.emplace(*embedded_.emplace());
    }
  }
  Database& operator*() { return cluster_ ? static_cast<Database&>(**cluster_) : *counting_; }

  /// How many round trips `fn` takes.
  template <class Fn>
  std::uint64_t round_trips_of(Fn&& fn) {
    const auto before = round_trips();
    fn();
    return round_trips() - before;
  }

  /// Matches so many round trips. On a cluster, a reply that arrives before it is needed does not count.
  ::testing::Matcher<std::uint64_t> takes(std::uint64_t trips) const {
    if (cluster_) return ::testing::Le(trips);
    return ::testing::Eq(trips);
  }

 private:
  std::uint64_t round_trips() {
    return cluster_ ? (*cluster_)->round_trips() : static_cast<std::uint64_t>(counting_->round_trips);
  }

  std::optional<embedded::TemporaryStore> embedded_;
  std::optional<RemoteStore> counting_;
  std::optional<fdb::TemporaryStore> cluster_;
};

}  // namespace divan::kv::testing
