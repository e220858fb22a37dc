#include "divan/kv/store.h"

#include <algorithm>
#include <utility>

#include "divan/base/bytes.h"
#include "divan/base/log.h"
#include "divan/kv/tuple_packer.h"
#include "divan/kv/tuple_versionstamp.h"

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

// FoundationDB counts a million versions a second: no commit is settled ten minutes later.
constexpr Version kCommitRecordLifetime = 600'000'000;
// Of 256 commits, so many clear old commit records.
constexpr unsigned kSweepOdds = 4;

std::string commit_record_key(std::string prefix, Version version) {
  tuple::Packer(prefix).integer(version);
  return prefix;
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

RangePage Transaction::get_range(const KeyRange& range, const RangeOptions& options) {
  RangePage page;
  page.more = scan(range, options, [&](std::string_view key, std::string_view value) {
    page.rows.push_back({std::string(key), std::string(value)});
    return true;
  });
  return page;
}

void Transaction::add(std::string_view key, std::int64_t delta) {
  std::string operand(8, '\0');
  const auto bits = static_cast<std::uint64_t>(delta);
  for (std::size_t i = 0; i < 8; ++i) operand[i] = static_cast<char>(bits >> (8 * i));
  atomic(AtomicOp::add, key, operand);
}

Version CommitOutcome::version() const {
  return versionstamp.empty() ? -1 : static_cast<Version>(read_u64(versionstamp));
}

Transaction::~Transaction() { end_try(); }

void Transaction::commit() {
  try {
    const auto record = add_commit_record();
    outcome_.state = CommitOutcome::State::unknown;  // from now on the commit may be made
    try {
      outcome_.versionstamp = do_commit();
    } catch (const Error& error) {
      if (!record || error.code() != ErrorCode::commit_unknown_result) throw;
      outcome_.versionstamp = settle(*record);
    }
  } catch (const Error& error) {
    if (!error.maybe_committed()) outcome_.state = CommitOutcome::State::refused;
    end_try();
    throw;
  }
  outcome_.state = CommitOutcome::State::committed;
  end_try();
}

// Adds the record to the reads and writes of a commit whose response may be lost.
std::optional<CommitRecord> Transaction::add_commit_record() {
  if (read_only()) return std::nullopt;
  const std::string id = new_commit_record_id();
  if (id.empty()) return std::nullopt;
  CommitRecord record{.version = read_version(), .key = {}};
  record.key = commit_record_key(commit_record_prefix(), record.version);
  tuple::Packer(record.key).bytes(id);
  // First the read: engines leave out what the transaction has written.
  add_read_conflict({record.key, record.key + '\0'});
  set_versionstamped_value(record.key,
                           std::string(Versionstamp::kTransactionSize + sizeof(std::uint32_t), '\0'));
  if (static_cast<unsigned char>(id.front()) < kSweepOdds && record.version > kCommitRecordLifetime)
    clear_range(commit_record_key(commit_record_prefix(), 0),
                commit_record_key(commit_record_prefix(), record.version - kCommitRecordLifetime));
  return record;
}

// Returns the commit's versionstamp. Throws not_committed if it was not made and never will be,
// commit_unknown_result if that cannot be found out.
std::string Transaction::settle(const CommitRecord& record) {
  try {
    const auto tx = begin_settling();
    for (bool settled = false; !settled;) {
      try {
        if (auto stamp = tx->get(record.key)) return *std::move(stamp);
        if (tx->read_version() > record.version + kCommitRecordLifetime)
          throw Error(ErrorCode::transaction_timed_out, "The commit's record may have been cleared.");
        tx->clear(record.key);
        tx->do_commit();
        settled = true;
      } catch (const Error& error) {
        // Clearing the key again does no harm.
        const bool is_lost = error.code() == ErrorCode::commit_unknown_result;
        tx->on_error(is_lost ? Error(ErrorCode::not_committed) : error);
      }
    }
  } catch (const Error& error) {
    log::debug("The outcome of a commit stays unknown: {}", error.what());
    throw Error(ErrorCode::commit_unknown_result);
  }
  throw Error(ErrorCode::not_committed);
}

std::string Transaction::commit_record_prefix() const {
  std::string prefix;
  tuple::Packer(prefix).string("txid");
  return prefix;
}

void Transaction::end_try() {
  for (const auto& callback : std::exchange(callbacks_, {})) {
    try {
      callback(outcome_);
    } catch (const std::exception& e) { log::error("A callback of a transaction failed: {}", e.what()); }
  }
}

void Transaction::after_commit(std::function<void()> callback) {
  on_outcome([callback = std::move(callback)](const CommitOutcome& outcome) {
    if (outcome.committed()) callback();
  });
}

std::string Transaction::versionstamp() const {
  if (outcome_.versionstamp.empty())
    throw Error(ErrorCode::client_invalid_operation, "Nothing was committed.");
  return outcome_.versionstamp;
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
  end_try();
  slots_.clear();
  outcome_ = {};
  user_versions_ = 0;
  do_reset();
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
