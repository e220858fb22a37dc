#include "divan/kv/fdb/dump.h"

#include "divan/kv/fdb/pages.h"

namespace divan::kv::fdb {
namespace {

// How long one version is read: about a third of the time for which a cluster keeps it, so that the next one
// is found in time.
constexpr Duration kReadFor = std::chrono::milliseconds(1'500);
constexpr auto kNotCommitted = static_cast<FdbError>(ErrorCode::not_committed);
constexpr auto kTooOld = static_cast<FdbError>(ErrorCode::transaction_too_old);

class Dump {
 public:
  Dump(Store& store, const RowVisitor& visit)
      : store_(store), cluster_(store.cluster), visit_(visit), next_(store.subspace.begin()) {
    RawTransaction tx(cluster_);
    const Future version = tx.read_version();
    cluster_.await(version);
    first_ = version_ = tx.number_in(version);
    since_ = cluster_.clock().now();
  }

  Version run() {
    while (read_for_a_while()) move_on();
    return first_;
  }

 private:
  bool is_young() const { return cluster_.clock().now() - since_ < kReadFor; }

  // Returns false at the end.
  bool read_for_a_while() {
    RawTransaction tx(cluster_);
    tx.set_read_version(version_);
    Pages pages(tx, next_, store_.subspace.end(), {});
    do {
      std::span<const FdbKeyValue> rows;
      if (const FdbError code = pages.next(rows); code == kTooOld) {
        throw_changed();
      } else if (code != 0) {
        throw error_of(cluster_.api(), code);
      }
      if (rows.empty()) return false;
      for (const auto& row : rows) {
        const auto key = view(row.key, row.key_length);
        if (!visit_(key.substr(store_.subspace.prefix_bytes()), view(row.value, row.value_length)))
          return false;
        next_.assign(key).push_back('\0');
      }
    } while (is_young());
    return true;
  }

  // Advances to a version at which the remaining rows are unchanged.
  void move_on() {
    for (int tries = 0; tries < kMaxAttempts; ++tries) {
      RawTransaction tx(cluster_);
      tx.set_read_version(version_);
      tx.add_conflict(ConflictRange::read, next_, store_.subspace.end());
      const std::string own = store_.subspace.dump_key();
      tx.add_conflict(ConflictRange::write, own, own + '\0');
      const auto now = cluster_.clock().now();
      const FdbError code = cluster_.outcome_of(tx.commit());
      if (code == 0) {
        // Others that were committed at the same version may have come after it.
        version_ = tx.committed_version() - 1;
        since_ = now;
        return;
      }
      if (code == kNotCommitted || code == kTooOld) throw_changed();
      // It writes nothing, so it may also be repeated if its response was lost.
      const Error error = error_of(cluster_.api(), code);
      if (!error.retryable() && error.code() != ErrorCode::commit_unknown_result) throw error;
    }
    throw Error(ErrorCode::transaction_timed_out);
  }

  [[noreturn]] static void throw_changed() {
    throw Error(ErrorCode::transaction_too_old,
                "The rows were changed while they were read: stop all writes to the store, or use "
                "FoundationDB's own backup.");
  }

  Store& store_;
  const Cluster& cluster_;
  const RowVisitor& visit_;
  std::string next_;
  Version first_ = 0;
  Version version_ = 0;
  MonotonicTime since_;
};

}  // namespace

Version dump_rows(Store& store, const RowVisitor& visit) { return Dump(store, visit).run(); }

}  // namespace divan::kv::fdb
