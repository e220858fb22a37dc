#include "divan/kv/fdb/engine.h"

#include <fmt/format.h>

#include "divan/kv/fdb/dump.h"
#include "divan/kv/fdb/opening.h"
#include "divan/kv/fdb/transaction.h"

namespace divan::kv::fdb {
namespace {

// The cluster's commits have at least the version that is stored here.
constexpr std::string_view kLeastVersionKey = "\xff/minRequiredCommitVersion";
// For so long after it was raised the cluster may start no transactions, and is polled.
constexpr Duration kSettlesAfterJump = std::chrono::seconds(15);
constexpr Duration kSettlePoll = std::chrono::milliseconds(500);
constexpr Duration kLongestJump = std::chrono::minutes(1);
// The client's own limit. For a while it also counts the watches of abandoned transactions.
constexpr std::int64_t kMaxClientWatches = 1'000'000;

const std::string& checked(const std::string& cluster_file) {
  check_cluster_file(cluster_file);
  return cluster_file;
}

std::string little_endian(std::int64_t number) {
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i));
  return bytes;
}

}  // namespace

FdbDatabase::FdbDatabase(const Options& options, const Clock& clock, Rng& rng)
    : store_{.cluster = Cluster(Client::of_this_process(options.client), checked(options.cluster_file), clock,
                                options.answer_timeout),
             .subspace = Subspace(options.name),
             .tag = options.tag,
             .rng = rng,
             .watches = Watches(options.max_watches)} {
  store_.cluster.set_option(DatabaseOption::max_watches, kMaxClientWatches);
  store_.cluster.set_option(DatabaseOption::size_limit, kMaxTransactionBytes);
  await_cluster(store_.cluster, options.cluster_file, options.start_timeout);
  if (options.unfinished) {
    begin_store(store_.cluster, store_.subspace);
  } else {
    check_format(store_.cluster, store_.subspace, {kOldestFormat, kFormat}, options.raises_format);
  }
}

FdbDatabase::~FdbDatabase() = default;

void FdbDatabase::finish() { finish_store(store_.cluster, store_.subspace, kFormat); }

std::unique_ptr<Transaction> FdbDatabase::begin() { return std::make_unique<FdbTransaction>(store_); }

Version FdbDatabase::dump(const RowVisitor& visit) { return dump_rows(store_, visit); }

std::int64_t FdbDatabase::estimate_bytes(const KeyRange& range) {
  std::int64_t bytes = 0;
  run_raw(store_.cluster, [&](RawTransaction& tx) -> FdbError {
    const Future estimated =
        tx.estimated_bytes(store_.subspace.in_cluster(range.begin), store_.subspace.in_cluster(range.end));
    if (const FdbError code = store_.cluster.outcome_of(estimated); code != 0) return code;
    bytes = tx.number_in(estimated);
    return 0;
  });
  return bytes;
}

void FdbDatabase::advance_version(Version at_least) {
  // The cluster recovers then, so the response to the commit is often lost.
  bool raised = false;
  for (bool reached = false; !reached;) {
    run_raw(store_.cluster, [&](RawTransaction& tx) -> FdbError {
      tx.set_option(TransactionOption::access_system_keys);
      const Future version = tx.read_version();
      if (const FdbError code = store_.cluster.outcome_of(version); code != 0) return code;
      reached = tx.number_in(version) > at_least;
      if (reached) return 0;
      raised = true;
      tx.set(kLeastVersionKey, little_endian(at_least + 1));
      return 0;
    });
  }
  if (raised) await_settled();
}

// Within a second after a jump of more than some 300,000,000 versions, a cluster stops starting transactions
// for about ten seconds (FoundationDB 7.1: its ratekeeper takes the jump for storage servers that lag). Other
// transactions would get transaction_timed_out.
void FdbDatabase::await_settled() {
  const Clock& clock = store_.cluster.clock();
  const MonotonicTime raised = clock.now();
  for (bool answered = true; !answered || clock.now() < raised + kSettlesAfterJump;) {
    clock.sleep(kSettlePoll);
    try {
      run_raw(store_.cluster, [&](RawTransaction& tx) -> FdbError {
        return store_.cluster.outcome_of(tx.get(store_.subspace.format_key(), true));
      });
      answered = true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::transaction_timed_out || clock.now() >= raised + kLongestJump) throw;
      answered = false;
    }
  }
}

void erase_store(const Options& options, const Clock& clock) {
  const Cluster cluster(Client::of_this_process(options.client), checked(options.cluster_file), clock,
                        options.answer_timeout);
  await_cluster(cluster, options.cluster_file, options.start_timeout);
  const Subspace subspace(options.name);
  run_raw(cluster, [&](RawTransaction& tx) -> FdbError {
    tx.clear_range(subspace.begin(), subspace.very_end());
    return 0;
  });
}

}  // namespace divan::kv::fdb
