#include "divan/kv/fdb/transaction.h"

#include <algorithm>
#include <utility>

#include "divan/base/log.h"
#include "divan/kv/fdb/pages.h"
#include "divan/kv/retry.h"
#include "divan/kv/stamping.h"

namespace divan::kv::fdb {
namespace {

constexpr std::string_view kEndOfKeys = "\xff";
constexpr auto kNotCommitted = static_cast<FdbError>(ErrorCode::not_committed);

// What FoundationDB counts for each besides its bytes.
constexpr std::size_t kWriteBytes = 40, kConflictBytes = 32;

constexpr std::size_t kIdBytes = 12;

Mutation mutation_of(AtomicOp op) {
  switch (op) {
    case AtomicOp::add: return Mutation::add;
    case AtomicOp::min: return Mutation::min;
    case AtomicOp::max: return Mutation::max;
    case AtomicOp::byte_min: return Mutation::byte_min;
    case AtomicOp::byte_max: return Mutation::byte_max;
    case AtomicOp::compare_and_clear: break;
  }
  return Mutation::compare_and_clear;
}

std::string with_offset(std::string bytes, std::size_t offset) {
  for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(offset >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

FdbTransaction::FdbTransaction(Store& store, bool settles)
    : store_(store), settles_(settles), raw_(store.cluster), prefetched_(raw_, store.subspace) {
  set_options();
}

FdbTransaction::~FdbTransaction() { cancel_watches(); }

void FdbTransaction::set_options() {
  if (!store_.tag.empty()) raw_.set_option(TransactionOption::auto_throttle_tag, store_.tag);
}

void FdbTransaction::forget() {
  cancel_watches();
  prefetched_.forget();
  coming_version_.reset();
  read_version_.reset();
  has_read_ = false;
  unreadable_ = {};
  stamped_keys_.clear();
  has_writes_ = false;
  has_ended_ = false;
  writes_commit_record_ = false;
  bytes_ = 0;
  last_error_ = 0;
  set_options();
}

void FdbTransaction::do_reset() {
  // After on_error() the client has reset its transaction, and remembers the length of its pauses.
  if (!std::exchange(raw_is_reset_, false)) {
    raw_.reset();
    attempts_ = 0;
  }
  forget();
}

void FdbTransaction::cancel_watches() {
  for (const auto& watch : std::exchange(watches_, {})) watch->cancel();
}

// Only commits and the transactions that settle them reach the engine's own rows, from kEndOfKeys on.
std::string_view FdbTransaction::end_of_keys() const {
  return settles_ || writes_commit_record_ ? "\xff\xff" : kEndOfKeys;
}

void FdbTransaction::check_usable() const {
  if (has_ended_) throw Error(ErrorCode::used_during_commit);
}

void FdbTransaction::check_readable(std::string_view key) const {
  check_usable();
  if (key >= end_of_keys()) throw Error(ErrorCode::key_outside_legal_range);
  if (unreadable_.covering(key) != unreadable_.end()) throw Error(ErrorCode::accessed_unreadable);
}

void FdbTransaction::check_key(std::string_view key) const {
  check_usable();
  if (key.size() > kMaxKeyBytes) throw Error(ErrorCode::key_too_large);
  if (key >= end_of_keys()) throw Error(ErrorCode::key_outside_legal_range);
}

void FdbTransaction::check_value(std::string_view value) {
  if (value.size() > kMaxValueBytes) throw Error(ErrorCode::value_too_large);
}

void FdbTransaction::check_range(std::string_view begin, std::string_view end) const {
  check_usable();
  if (begin > end) throw Error(ErrorCode::inverted_range);
  if (end > end_of_keys()) throw Error(ErrorCode::key_outside_legal_range);
}

void FdbTransaction::fail(FdbError code) {
  last_error_ = code;
  if (code == kNotCommitted) store_.cluster.count_commit(true);
  throw error_of(store_.cluster.api(), code);
}

void FdbTransaction::await(const Future& future) {
  if (const FdbError code = store_.cluster.outcome_of(future); code != 0) fail(code);
}

void FdbTransaction::await_round_trip(const Future& future) {
  store_.cluster.count_round_trip();
  await(future);
  has_read_ = true;
}

void FdbTransaction::prefetch(const Prefetch& reads) {
  check_usable();
  prefetched_.ask(reads, unreadable_);
  if (!read_version_ && !coming_version_) coming_version_.emplace(raw_.read_version());
}

// The value of a key that was prefetched, or null. A value that is returned counts as read.
const std::optional<std::string>* FdbTransaction::prefetched(std::string_view key, Isolation isolation) {
  const auto* value = prefetched_.find(key);
  if (value == nullptr) return nullptr;
  has_read_ = true;
  if (isolation == Isolation::serializable) {
    const std::string there = store_.subspace.in_cluster(key);
    raw_.add_conflict(ConflictRange::read, there, there + '\0');
  }
  return value;
}

void FdbTransaction::count_write(std::size_t key_bytes, std::size_t value_bytes) {
  has_writes_ = true;
  bytes_ += kWriteBytes + store_.subspace.prefix_bytes() + key_bytes + value_bytes;
  count_conflict(key_bytes, key_bytes + 1);
}

void FdbTransaction::count_conflict(std::size_t begin_bytes, std::size_t end_bytes) {
  bytes_ += kConflictBytes + 2 * store_.subspace.prefix_bytes() + begin_bytes + end_bytes;
}

std::optional<std::string> FdbTransaction::get(std::string_view key, Isolation isolation) {
  check_readable(key);
  const bool is_snapshot = isolation == Isolation::snapshot;
  if (!is_snapshot) count_conflict(key.size(), key.size() + 1);
  if (const auto* value = prefetched(key, isolation)) return *value;
  const Future future = raw_.get(store_.subspace.in_cluster(key), is_snapshot);
  await_round_trip(future);
  auto value = raw_.value_in(future);
  // Of what it has written itself, the client knows what conflicts.
  if (!has_writes_) prefetched_.keep(key, value);
  return value;
}

std::vector<std::optional<std::string>> FdbTransaction::get_many(std::span<const std::string> keys,
                                                                 Isolation isolation) {
  check_usable();
  const bool is_snapshot = isolation == Isolation::snapshot;
  std::vector<std::optional<std::string>> values(keys.size());
  std::vector<std::pair<std::size_t, Future>> futures;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    check_readable(keys[i]);
    if (!is_snapshot) count_conflict(keys[i].size(), keys[i].size() + 1);
    if (const auto* value = prefetched(keys[i], isolation)) {
      values[i] = *value;
    } else {
      futures.emplace_back(i, raw_.get(store_.subspace.in_cluster(keys[i]), is_snapshot));
    }
  }
  if (!futures.empty()) store_.cluster.count_round_trip();
  for (const auto& [i, future] : futures) {
    await(future);
    values[i] = raw_.value_in(future);
  }
  has_read_ = has_read_ || !futures.empty();
  return values;
}

// What a scan has shown so far conflicts when the scan ends, however it does.
class FdbTransaction::Shown {
 public:
  Shown(FdbTransaction& tx, const KeyRange& range, const RangeOptions& options)
      : tx_(tx), options_(options), range_(range), shown_(range) {}
  ~Shown() {
    if (options_.isolation == Isolation::snapshot) return;
    tx_.count_conflict(shown_.begin.size(), shown_.end.size());
    const Subspace& subspace = tx_.store_.subspace;
    try {
      tx_.raw_.add_conflict(ConflictRange::read, subspace.in_cluster(shown_.begin),
                            subspace.in_cluster(shown_.end));
    } catch (const Error&) {}  // its transaction has failed already
  }
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;

  void up_to(std::string_view key) {
    if (options_.reverse) {
      shown_.begin = key;
    } else {
      shown_.end.assign(key).push_back('\0');
    }
  }
  void all() { shown_ = range_; }

 private:
  FdbTransaction& tx_;
  const RangeOptions& options_;
  const KeyRange& range_;
  KeyRange shown_;
};

bool FdbTransaction::scan(const KeyRange& asked, const RangeOptions& options, const RowVisitor& visit) {
  check_range(asked.begin, asked.end);
  if (asked.begin == asked.end) return false;
  KeyRange readable = asked;
  bool is_cut = false;
  if (options.reverse) {
    const auto hidden = unreadable_.last_below(asked.end);
    is_cut = hidden != unreadable_.end() && hidden->second > asked.begin;
    if (is_cut) readable.begin = std::min(hidden->second, asked.end);
  } else {
    const auto hidden = unreadable_.first_after(asked.begin);
    is_cut = hidden != unreadable_.end() && hidden->first < asked.end;
    if (is_cut) readable.end = std::max(hidden->first, asked.begin);
  }
  bool wanted_more = true;
  const bool was_full = readable.begin < readable.end &&
                        scan_readable(readable, options, [&](std::string_view key, std::string_view value) {
                          wanted_more = visit(key, value);
                          return wanted_more;
                        });
  if (is_cut && !was_full && wanted_more) throw Error(ErrorCode::accessed_unreadable);
  return was_full;
}

bool FdbTransaction::scan_readable(const KeyRange& range, const RangeOptions& options,
                                   const RowVisitor& visit) {
  const Subspace& subspace = store_.subspace;
  std::optional<Shown> shown;
  std::size_t rows = 0, bytes = 0;
  enum class Next { row, stopped, full };
  const auto show = [&](std::string_view key, std::string_view value) {
    shown->up_to(key);
    bytes += key.size() + value.size();
    ++rows;
    if (!visit(key, value)) return Next::stopped;
    const bool full = rows == options.limit || (options.target_bytes != 0 && bytes >= options.target_bytes);
    return full ? Next::full : Next::row;
  };

  KeyRange left = range;
  if (const auto* known = prefetched_.find(range, options.reverse)) {
    has_read_ = true;
    shown.emplace(*this, range, options);
    const auto& [covered, all] = *known;
    const auto inside = [&](const KeyValue& row) { return range.contains(row.key); };
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& row = options.reverse ? all[all.size() - 1 - i] : all[i];
      if (!inside(row)) continue;
      if (const Next next = show(row.key, row.value); next != Next::row) return next == Next::full;
    }
    (options.reverse ? left.end : left.begin) =
        options.reverse ? std::max(covered.begin, range.begin) : std::min(covered.end, range.end);
  }
  if (left.begin < left.end) {
    Pages pages(raw_, subspace.in_cluster(left.begin), subspace.in_cluster(left.end),
                {.rows = options.limit == 0 ? 0 : options.limit - rows,
                 .bytes = options.target_bytes == 0 ? 0 : options.target_bytes - bytes,
                 .reverse = options.reverse});
    for (;;) {
      std::span<const FdbKeyValue> page;
      if (const FdbError code = pages.next(page); code != 0) fail(code);
      has_read_ = true;
      if (!shown) shown.emplace(*this, range, options);
      if (page.empty()) break;
      for (const auto& row : page) {
        const auto key = view(row.key, row.key_length).substr(subspace.prefix_bytes());
        if (const Next next = show(key, view(row.value, row.value_length)); next != Next::row)
          return next == Next::full;
      }
    }
  }
  shown->all();
  return false;
}

Version FdbTransaction::read_version() {
  if (read_version_) return *read_version_;
  if (!coming_version_) coming_version_.emplace(raw_.read_version());
  if (!has_read_ && !coming_version_->is_ready()) store_.cluster.count_round_trip();
  await(*coming_version_);
  has_read_ = true;
  read_version_ = raw_.number_in(*coming_version_);
  coming_version_.reset();
  return *read_version_;
}

void FdbTransaction::set(std::string_view key, std::string_view value) {
  check_key(key);
  check_value(value);
  count_write(key.size(), value.size());
  prefetched_.written(key);
  raw_.set(store_.subspace.in_cluster(key), value);
}

void FdbTransaction::clear(std::string_view key) {
  check_key(key);
  count_write(key.size(), key.size());
  clear_stamped(key, std::string(key) + '\0');
  prefetched_.written(key);
  raw_.clear(store_.subspace.in_cluster(key));
}

void FdbTransaction::clear_range(std::string_view begin, std::string_view end) {
  check_range(begin, end);
  if (begin == end) return;
  count_write(begin.size(), end.size());
  clear_stamped(begin, end);
  prefetched_.written(begin, end);
  raw_.clear_range(store_.subspace.in_cluster(begin), store_.subspace.in_cluster(end));
}

void FdbTransaction::atomic(AtomicOp op, std::string_view key, std::string_view operand) {
  check_key(key);
  check_value(operand);
  count_write(key.size(), operand.size());
  prefetched_.written(key);
  raw_.mutate(mutation_of(op), store_.subspace.in_cluster(key), operand);
}

void FdbTransaction::set_versionstamped_key(std::string_view key, std::string_view value) {
  check_key(key);
  check_value(value);
  const std::uint32_t offset = take_stamp_offset(key);
  const auto possible = possible_keys(key, offset, read_version());
  unreadable_.add(possible.begin, possible.end);
  prefetched_.written(possible.begin, possible.end);
  count_write(key.size(), value.size());
  stamped_keys_.push_back(
      {with_offset(store_.subspace.in_cluster(key), store_.subspace.prefix_bytes() + offset),
       std::string(value)});
}

void FdbTransaction::give_stamped_keys() {
  for (const auto& [key, value] : std::exchange(stamped_keys_, {}))
    raw_.mutate(Mutation::set_versionstamped_key, key, value);
}

// The clear that follows also concerns the versionstamped keys that were written before it.
void FdbTransaction::clear_stamped(std::string_view begin, std::string_view end) {
  const auto hidden = unreadable_.first_after(begin);
  if (hidden == unreadable_.end() || hidden->first >= end) return;
  give_stamped_keys();
  unreadable_.remove(begin, end);
}

void FdbTransaction::set_versionstamped_value(std::string_view key, std::string_view value) {
  check_key(key);
  check_value(value);
  auto stamped = value;
  take_stamp_offset(stamped);
  unreadable_.add(key, std::string(key) + '\0');
  prefetched_.written(key);
  count_write(key.size(), value.size());
  raw_.mutate(Mutation::set_versionstamped_value, store_.subspace.in_cluster(key), value);
}

std::shared_ptr<Watch> FdbTransaction::watch(std::string_view key) {
  // Reports errors at once. The client reads the key anyway.
  get(key, Isolation::snapshot);
  count_conflict(key.size(), key.size() + 1);
  const std::string there = store_.subspace.in_cluster(key);
  auto asked = store_.watches.add(store_.cluster.api(), [&] { return raw_.watch(there); });
  watches_.push_back(std::move(asked.entry));
  return std::move(asked.watch);
}

void FdbTransaction::add_read_conflict(const KeyRange& range) {
  check_range(range.begin, range.end);
  if (range.begin == range.end) return;
  // Changes after the read version conflict, so the transaction needs one now.
  read_version();
  count_conflict(range.begin.size(), range.end.size());
  raw_.add_conflict(ConflictRange::read, store_.subspace.in_cluster(range.begin),
                    store_.subspace.in_cluster(range.end));
}

void FdbTransaction::add_write_conflict(const KeyRange& range) {
  check_range(range.begin, range.end);
  if (range.begin == range.end) return;
  has_writes_ = true;
  count_conflict(range.begin.size(), range.end.size());
  raw_.add_conflict(ConflictRange::write, store_.subspace.in_cluster(range.begin),
                    store_.subspace.in_cluster(range.end));
}

std::string FdbTransaction::do_commit() {
  check_usable();
  has_ended_ = true;
  std::string stamp;
  try {
    if (has_writes_) {
      stamp = commit_writes();
    } else if (!watches_.empty()) {
      await_round_trip(raw_.commit());
    }
  } catch (const Error&) {
    cancel_watches();
    throw;
  }
  for (const auto& watch : std::exchange(watches_, {})) watch->set();
  return stamp;
}

std::string FdbTransaction::commit_writes() {
  give_stamped_keys();
  const Future stamp = raw_.versionstamp();
  const Future commit = raw_.commit();
  store_.cluster.count_round_trip();
  const auto error = outcome_of(commit, stamp);
  if (!error) throw Error(ErrorCode::commit_unknown_result);
  if (*error != 0) fail(*error);
  store_.cluster.count_commit(false);
  return raw_.key_in(stamp);
}

// nullopt if the response was lost or does not come.
std::optional<FdbError> FdbTransaction::outcome_of(const Future& commit, const Future& stamp) const {
  const Cluster& cluster = store_.cluster;
  try {
    const FdbError code = cluster.outcome_of(commit);
    if (code == 0 && cluster.outcome_of(stamp) == 0) return 0;
    if (code != 0 && !cluster.api().is(ErrorPredicate::maybe_committed, code)) return code;
  } catch (const Error& silence) { log::debug("A commit has to be settled: {}", silence.what()); }
  return std::nullopt;
}

std::string FdbTransaction::new_commit_record_id() {
  writes_commit_record_ = true;
  return store_.rng.bytes(kIdBytes);
}

std::string FdbTransaction::commit_record_prefix() const {
  std::string prefix(kEndOfKeys);
  return prefix + Transaction::commit_record_prefix();
}

std::unique_ptr<Transaction> FdbTransaction::begin_settling() {
  return std::make_unique<FdbTransaction>(store_, true);
}

void FdbTransaction::on_error(const Error& error) {
  has_ended_ = true;
  cancel_watches();
  if (!error.retryable()) throw error;
  count_try(attempts_, error);
  const Api& api = store_.cluster.api();
  const bool is_last = last_error_ != 0 && error_of(api, last_error_).code() == error.code();
  // The client waits, and resets its transaction.
  await(raw_.on_error(is_last ? last_error_ : static_cast<FdbError>(error.code())));
  raw_is_reset_ = true;
  reset();
}

}  // namespace divan::kv::fdb
