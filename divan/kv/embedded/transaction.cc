#include "divan/kv/embedded/transaction.h"

#include <utility>

#include "divan/base/check.h"
#include "divan/kv/stamping.h"

namespace divan::kv::embedded {
namespace {

constexpr std::string_view kEndOfKeys = "\xff";

}  // namespace

EmbeddedTransaction::EmbeddedTransaction(Committer& committer, const Clock& clock, Rng& rng)
    : committer_(committer), clock_(clock), rng_(rng) {
  do_reset();
}

EmbeddedTransaction::~EmbeddedTransaction() { cancel_watches(); }

void EmbeddedTransaction::cancel_watches() {
  for (const auto& request : request_->watches) request.watch->cancel();
  request_->watches.clear();
}

void EmbeddedTransaction::do_reset() {
  if (request_) cancel_watches();
  prefixes_.reset();
  snapshot_ = committer_.latest();
  started_ = clock_.now();
  request_ = std::make_shared<CommitRequest>();
  request_->read_version = snapshot_->version();
  conflict_bytes_ = 0;
  ended_ = false;
  committing_ = false;
  quick_bytes_.reset();
  reads_once_ = false;
  retries_ = {};
}

void EmbeddedTransaction::check_writable() const {
  if (ended_) throw Error(ErrorCode::used_during_commit);
}

void EmbeddedTransaction::check_young() const {
  if (clock_.now() - started_ > kTransactionLifetime) throw Error(ErrorCode::transaction_too_old);
}

void EmbeddedTransaction::check_readable() const {
  check_writable();
  check_young();
}

void EmbeddedTransaction::check_readable(std::string_view key) const {
  check_readable();
  if (key.starts_with(kEndOfKeys)) throw Error(ErrorCode::key_outside_legal_range);
  const RangeSet& unreadable = request_->writes.unreadable();
  if (unreadable.covering(key) != unreadable.end()) throw Error(ErrorCode::accessed_unreadable);
}

void EmbeddedTransaction::check_key(std::string_view key) const {
  check_writable();
  if (key.size() > kMaxKeyBytes) throw Error(ErrorCode::key_too_large);
  if (!key.empty() && key.front() == '\xff') throw Error(ErrorCode::key_outside_legal_range);
}

void EmbeddedTransaction::check_value(std::string_view value) const {
  if (value.size() > kMaxValueBytes) throw Error(ErrorCode::value_too_large);
}

void EmbeddedTransaction::check_range(std::string_view begin, std::string_view end) const {
  check_writable();
  if (begin > end) throw Error(ErrorCode::inverted_range);
  if (end > kEndOfKeys) throw Error(ErrorCode::key_outside_legal_range);
}

void EmbeddedTransaction::add_read_key(std::string_view key, Isolation isolation) {
  if (isolation == Isolation::snapshot) return;
  conflict_bytes_ += key.size();
  request_->read_conflicts.push_back({std::string(key), {}});
}

void EmbeddedTransaction::add_read(std::string begin, std::string end, Isolation isolation) {
  if (isolation == Isolation::snapshot || begin >= end) return;
  conflict_bytes_ += begin.size() + end.size();
  request_->read_conflicts.push_back({std::move(begin), std::move(end)});
}

std::optional<std::string> EmbeddedTransaction::get(std::string_view key, Isolation isolation) {
  check_readable(key);
  const auto& points = request_->writes.points();
  const auto point = points.find(key);
  if (point != points.end()) {
    if (point->second.kind != PointWrite::Kind::atomic) return value_after(point->second, std::nullopt);
    add_read_key(key, isolation);
    return value_after(point->second, stored(key));
  }
  if (request_->writes.is_cleared(key)) return std::nullopt;
  add_read_key(key, isolation);
  return stored(key);
}

std::optional<std::string> EmbeddedTransaction::stored(std::string_view key) {
  auto value = snapshot_->get(key, reads());
  if (value) count_read(value->size());
  return value;
}

void EmbeddedTransaction::count_read(std::size_t bytes) {
  if (!quick_bytes_) return;
  if (bytes > *quick_bytes_) throw Error(ErrorCode::would_block);
  *quick_bytes_ -= bytes;
}

std::vector<std::optional<std::string>> EmbeddedTransaction::get_many(std::span<const std::string> keys,
                                                                      Isolation isolation) {
  check_readable();
  if (request_->writes.empty()) {
    for (const auto& key : keys) {
      check_readable(key);
      add_read_key(key, isolation);
    }
    auto values = snapshot_->get_many(keys, reads());
    for (const auto& value : values) count_read(value ? value->size() : 0);
    return values;
  }
  std::vector<std::optional<std::string>> values;
  values.reserve(keys.size());
  for (const auto& key : keys) values.push_back(get(key, isolation));
  return values;
}

bool EmbeddedTransaction::scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) {
  check_range(range.begin, range.end);
  check_young();
  auto [begin, end] = range;
  if (begin >= end) return false;
  bool more = false;
  try {
    more = visit_rows(range, options, visit, options.reverse ? begin : end);
  } catch (...) {
    // How far it came is not known here, but rows may have been seen.
    add_read(begin, end, options.isolation);
    throw;
  }
  add_read(std::move(begin), std::move(end), options.isolation);
  return more;
}

bool EmbeddedTransaction::visit_rows(const KeyRange& range, const RangeOptions& options,
                                     const RowVisitor& visit, std::string& reached) {
  Cursor cursor(*snapshot_, request_->writes, range, options.reverse, reads(), prefixes_);
  std::size_t rows = 0;
  std::size_t bytes = 0;
  while (cursor.next()) {
    ++rows;
    const std::size_t row = cursor.key().size() + cursor.value().size();
    bytes += row;
    count_read(row);
    const bool wanted_more = visit(cursor.key(), cursor.value());
    const bool full = (options.limit != 0 && rows >= options.limit) ||
                      (options.target_bytes != 0 && bytes >= options.target_bytes);
    if (!full && wanted_more) continue;
    reached = cursor.key();
    if (!options.reverse) reached += '\0';
    return wanted_more;
  }
  return false;
}

void EmbeddedTransaction::set(std::string_view key, std::string_view value) {
  check_key(key);
  check_value(value);
  request_->writes.set(key, value);
}

void EmbeddedTransaction::clear(std::string_view key) {
  check_key(key);
  request_->writes.clear(key);
}

void EmbeddedTransaction::clear_range(std::string_view begin, std::string_view end) {
  check_range(begin, end);
  request_->writes.clear_range(begin, end);
}

void EmbeddedTransaction::atomic(AtomicOp op, std::string_view key, std::string_view operand) {
  check_key(key);
  check_value(operand);
  request_->writes.atomic(op, key, operand);
}

void EmbeddedTransaction::set_versionstamped_key(std::string_view key, std::string_view value) {
  check_key(key);
  check_value(value);
  const std::uint32_t offset = take_stamp_offset(key);
  request_->writes.add_stamped_key(key, offset, value, snapshot_->version());
}

void EmbeddedTransaction::set_versionstamped_value(std::string_view key, std::string_view value) {
  check_key(key);
  check_value(value);
  const std::uint32_t offset = take_stamp_offset(value);
  request_->writes.set_stamped_value(key, value, offset);
}

std::shared_ptr<Watch> EmbeddedTransaction::watch(std::string_view key) {
  auto seen = get(key, Isolation::snapshot);
  auto watch = std::make_shared<Watch>();
  committer_.watches().admit(watch);
  request_->watches.push_back({std::string(key), std::move(seen), watch});
  return watch;
}

void EmbeddedTransaction::add_read_conflict(const KeyRange& range) {
  check_range(range.begin, range.end);
  add_read(range.begin, range.end, Isolation::serializable);
}

void EmbeddedTransaction::add_write_conflict(const KeyRange& range) {
  check_range(range.begin, range.end);
  if (range.begin == range.end) return;
  conflict_bytes_ += range.begin.size() + range.end.size();
  request_->write_conflicts.push_back(range);
}

bool EmbeddedTransaction::read_only() const {
  return request_->writes.empty() && request_->write_conflicts.empty();
}

bool EmbeddedTransaction::start_commit(std::function<void()> done) {
  check_writable();
  if (read_only()) return false;
  check_commit();
  prefixes_.reset();
  ended_ = committing_ = true;
  request_->done = std::move(done);
  // It may be complete, and this object destroyed, before this returns.
  committer_.start(request_);
  return true;
}

std::string EmbeddedTransaction::do_commit() {
  if (!committing_) check_writable();
  prefixes_.reset();
  ended_ = true;
  std::string stamp;
  try {
    stamp = commit_writes();
  } catch (const Error&) {
    cancel_watches();
    throw;
  }
  for (const auto& watch : std::exchange(request_->watches, {})) {
    committer_.watches().add(watch, [this] { return committer_.latest(); });
  }
  // The snapshot holds back what compaction could drop.
  snapshot_.reset();
  return stamp;
}

// A transaction that only reads has read one version, however long that took. One that only writes has no
// age.
void EmbeddedTransaction::check_commit() const {
  if (!request_->read_conflicts.empty()) check_young();
  if (approximate_size() > kMaxTransactionBytes) throw Error(ErrorCode::transaction_too_large);
}

std::string EmbeddedTransaction::commit_writes() {
  if (read_only()) return {};
  if (!std::exchange(committing_, false)) {
    check_commit();
    committer_.commit(request_);
  }
  if (request_->error) throw *request_->error;
  DIVAN_CHECK(request_->version > request_->read_version, "version {} was committed after a read of {}",
              request_->version, request_->read_version);
  return versionstamp_bytes(request_->version, request_->order);
}

std::size_t EmbeddedTransaction::approximate_size() const {
  return request_->writes.bytes() + conflict_bytes_;
}

void EmbeddedTransaction::on_error(const Error& error) {
  clock_.sleep(start_retry(error));
  restart();
}

Duration EmbeddedTransaction::start_retry(const Error& error) {
  ended_ = true;
  return retries_.next_pause(error, rng_);
}

void EmbeddedTransaction::restart() {
  const Retries retries = retries_;
  reset();
  retries_ = retries;
}

}  // namespace divan::kv::embedded
