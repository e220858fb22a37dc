#include "divan/kv/store.h"

#include <utility>

#include "divan/base/log.h"
#include "divan/kv/tuple_packer.h"

namespace divan::kv {
namespace {

// Little-endian numbers of the operand's length, as FoundationDB's arithmetic works on them.
std::string fitted(const std::optional<std::string>& value, std::size_t size) {
  std::string fitted = value.value_or(std::string());
  fitted.resize(size, '\0');
  return fitted;
}

std::string add_little_endian(std::string a, std::string_view b) {
  unsigned carry = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const unsigned sum = static_cast<unsigned char>(a[i]) + static_cast<unsigned char>(b[i]) + carry;
    a[i] = static_cast<char>(sum);
    carry = sum >> 8;
  }
  return a;
}

bool less_little_endian(std::string_view a, std::string_view b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend(), [](char x, char y) {
    return static_cast<unsigned char>(x) < static_cast<unsigned char>(y);
  });
}

// FoundationDB counts a million versions a second: nobody retries for an hour.
constexpr Version kMarkLifetime = 3'600'000'000;
// Of 256 marked commits, so many look for old marks.
constexpr unsigned kSweepOdds = 4;

std::string mark_key(std::optional<Version> version = std::nullopt) {
  std::string key;
  tuple::Packer packer(key);
  packer.string("txid");
  if (version) packer.integer(*version);
  return key;
}

}  // namespace

bool Watch::fired() const {
  std::lock_guard lock(mutex_);
  return state_ == State::fired;
}

bool Watch::cancelled() const {
  std::lock_guard lock(mutex_);
  return state_ == State::cancelled;
}

void Watch::on_end(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    if (state_ == State::waiting) {
      callback_ = std::move(callback);
      return;
    }
  }
  callback();
}

bool Watch::wait_until(const Clock& clock, MonotonicTime deadline) const {
  std::unique_lock lock(mutex_);
  return clock.wait_until(lock, changed_, deadline, [this] { return state_ != State::waiting; });
}

void Watch::end(State how) {
  std::function<void()> callback;
  {
    std::lock_guard lock(mutex_);
    if (state_ != State::waiting) return;
    state_ = how;
    callback = std::move(callback_);
    callback_ = nullptr;
    changed_.notify_all();
  }
  if (callback) callback();
}

bool Transaction::scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) {
  if (range.begin > range.end) throw Error(ErrorCode::inverted_range);
  return scan(KeySelector::first_greater_or_equal(range.begin),
              KeySelector::first_greater_or_equal(range.end), options, visit);
}

RangePage Transaction::get_range(const KeySelector& begin, const KeySelector& end,
                                 const RangeOptions& options) {
  RangePage page;
  page.more = scan(begin, end, options, [&](std::string_view key, std::string_view value) {
    page.rows.push_back({std::string(key), std::string(value)});
    return true;
  });
  return page;
}

RangePage Transaction::get_range(const KeyRange& range, const RangeOptions& options) {
  if (range.begin > range.end) throw Error(ErrorCode::inverted_range);
  return get_range(KeySelector::first_greater_or_equal(range.begin),
                   KeySelector::first_greater_or_equal(range.end), options);
}

void Transaction::add(std::string_view key, std::int64_t delta) {
  std::string operand(8, '\0');
  const auto bits = static_cast<std::uint64_t>(delta);
  for (std::size_t i = 0; i < 8; ++i) operand[i] = static_cast<char>(bits >> (8 * i));
  atomic(AtomicOp::add, key, operand);
}

void Transaction::commit() {
  do_commit();
  // A callback may start another transaction, but not on this object.
  run_callbacks(std::exchange(after_commit_, {}));
}

void Transaction::run_callbacks(std::vector<std::function<void()>> callbacks) {
  for (const auto& callback : callbacks) {
    try {
      callback();
    } catch (const std::exception& e) { log::error("A callback after a commit failed: {}", e.what()); }
  }
}

std::shared_ptr<Watch> Transaction::try_watch(std::string_view key) {
  try {
    return watch(key);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::too_many_watches) throw;
    return nullptr;
  }
}

std::uint16_t Transaction::claim_user_version() {
  if (user_versions_ > UINT16_MAX) throw Error(ErrorCode::transaction_too_large);
  return static_cast<std::uint16_t>(user_versions_++);
}

void Transaction::reset() {
  after_commit_.clear();
  user_versions_ = 0;
  do_reset();
}

CommitMark::CommitMark(Database& database) : id_(database.new_transaction_id()) {}

bool CommitMark::found(Transaction& tx) {
  if (!lost_) return false;
  const bool there = tx.get(*lost_, Isolation::snapshot).has_value();
  lost_.reset();
  // What was not committed is forgotten before the next try: it may share its state with the callbacks.
  auto callbacks = std::exchange(callbacks_, {});
  if (there) tx.run_callbacks(std::move(callbacks));
  return there;
}

void CommitMark::commit(Transaction& tx) {
  if (!id_ || tx.read_only()) return tx.commit();
  const Version version = tx.read_version();
  std::string key = mark_key(version);
  tuple::Packer(key).bytes(*id_);
  tx.set(key, {});
  if (static_cast<unsigned char>(id_->front()) < kSweepOdds && version > kMarkLifetime) {
    tx.clear_range(mark_key(), mark_key(version - kMarkLifetime));
  }
  auto callbacks = tx.after_commit_;
  try {
    tx.commit();
  } catch (const Error& error) {
    if (error.maybe_committed()) {
      lost_ = std::move(key);
      callbacks_ = std::move(callbacks);
    }
    throw;
  }
}

std::int64_t decode_counter(std::string_view value) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < value.size() && i < 8; ++i) {
    bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(value[i])) << (8 * i);
  }
  return static_cast<std::int64_t>(bits);
}

std::int64_t decode_counter(const std::optional<std::string>& value) {
  return value ? decode_counter(std::string_view(*value)) : 0;
}

std::optional<std::string> apply_atomic(AtomicOp op, const std::optional<std::string>& value,
                                        std::string_view operand) {
  switch (op) {
    case AtomicOp::add: return add_little_endian(fitted(value, operand.size()), operand);
    case AtomicOp::min: {
      if (!value) return std::string(operand);
      auto present = fitted(value, operand.size());
      return less_little_endian(operand, present) ? std::string(operand) : present;
    }
    case AtomicOp::max: {
      auto present = fitted(value, operand.size());
      return less_little_endian(present, operand) ? std::string(operand) : present;
    }
    case AtomicOp::byte_min: return !value || operand < *value ? std::string(operand) : *value;
    case AtomicOp::byte_max: return !value || operand > *value ? std::string(operand) : *value;
    case AtomicOp::compare_and_clear: return value == operand ? std::nullopt : value;
  }
  return value;
}

}  // namespace divan::kv
