#include "divan/kv/reference/transaction.h"

#include <utility>

#include "divan/base/check.h"
#include "divan/kv/stamping.h"

namespace divan::kv::reference {
namespace {

constexpr std::string_view kEndOfKeys = "\xff";

KeyRange just(std::string_view key) { return {std::string(key), std::string(key) + '\0'}; }

}  // namespace

ReferenceTransaction::ReferenceTransaction(State& state, const Clock& clock, Rng& rng)
    : state_(state), clock_(clock), rng_(rng) {
  {
    std::lock_guard lock(state_.mutex);
    read_version_ = state_.version;
    state_.read_versions.insert(read_version_);
  }
  do_reset();
}

ReferenceTransaction::~ReferenceTransaction() {
  cancel_watches();
  std::lock_guard lock(state_.mutex);
  state_.read_versions.erase(state_.read_versions.find(read_version_));
}

void ReferenceTransaction::cancel_watches() {
  for (const auto& [entry, watch] : std::exchange(watches_, {})) watch->cancel();
}

void ReferenceTransaction::do_reset() {
  cancel_watches();
  {
    std::lock_guard lock(state_.mutex);
    state_.read_versions.erase(state_.read_versions.find(read_version_));
    read_version_ = state_.version;
    state_.read_versions.insert(read_version_);
  }
  started_ = clock_.now();
  writes_.clear();
  written_keys_.clear();
  unreadable_.clear();
  reads_.clear();
  write_conflicts_.clear();
  size_ = 0;
  ended_ = false;
  retries_ = {};
}

void ReferenceTransaction::check_open() const {
  if (ended_) throw Error(ErrorCode::used_during_commit);
}

void ReferenceTransaction::check_young() const {
  if (clock_.now() - started_ > kTransactionLifetime) throw Error(ErrorCode::transaction_too_old);
}

void ReferenceTransaction::check_key(std::string_view key) const {
  check_open();
  if (key.size() > kMaxKeyBytes) throw Error(ErrorCode::key_too_large);
  if (key.starts_with(kEndOfKeys)) throw Error(ErrorCode::key_outside_legal_range);
}

void ReferenceTransaction::check_range(std::string_view begin, std::string_view end) const {
  check_open();
  if (begin > end) throw Error(ErrorCode::inverted_range);
  if (end > kEndOfKeys) throw Error(ErrorCode::key_outside_legal_range);
}

void ReferenceTransaction::add_read(KeyRange range, Isolation isolation) {
  if (isolation == Isolation::snapshot || range.begin >= range.end) return;
  size_ += range.begin.size() + range.end.size();
  reads_.push_back(std::move(range));
}

std::optional<std::string> ReferenceTransaction::value(std::string_view key) const {
  std::optional<std::string> value;
  {
    std::lock_guard lock(state_.mutex);
    value = state_.value(key, read_version_);
  }
  bool unreadable = false;
  for (const auto& write : writes_) {
    switch (write.kind) {
      case Write::Kind::clear_range:
        if (write.key <= key && key < write.value) value.reset(), unreadable = false;
        break;
      case Write::Kind::set:
        if (write.key == key) value = write.value;
        break;
      case Write::Kind::atomic:
        if (write.key == key && !unreadable) value = apply_atomic(write.op, value, write.value);
        break;
      case Write::Kind::stamped_value:
        if (write.key == key) unreadable = true;
        break;
      case Write::Kind::stamped_key: break;
    }
  }
  if (unreadable) throw Error(ErrorCode::accessed_unreadable);
  return value;
}

bool ReferenceTransaction::is_decided(std::string_view key) const {
  for (const auto& write : writes_) {
    if (write.kind == Write::Kind::set && write.key == key) return true;
    if (write.kind == Write::Kind::clear_range && write.key <= key && key < write.value) return true;
  }
  return false;
}

std::optional<std::string> ReferenceTransaction::get(std::string_view key, Isolation isolation) {
  check_open();
  check_young();
  if (key.starts_with(kEndOfKeys)) throw Error(ErrorCode::key_outside_legal_range);
  check_way(just(key));
  auto found = value(key);
  if (!is_decided(key)) add_read(just(key), isolation);
  return found;
}

std::vector<std::optional<std::string>> ReferenceTransaction::get_many(std::span<const std::string> keys,
                                                                       Isolation isolation) {
  std::vector<std::optional<std::string>> values;
  for (const auto& key : keys) values.push_back(get(key, isolation));
  return values;
}

void ReferenceTransaction::check_way(const KeyRange& way) const {
  for (const auto& range : unreadable_) {
    if (overlap(range, way)) throw Error(ErrorCode::accessed_unreadable);
  }
}

void ReferenceTransaction::make_readable(const KeyRange& cleared) {
  std::vector<KeyRange> left;
  for (const auto& range : unreadable_) {
    if (!overlap(range, cleared)) {
      left.push_back(range);
      continue;
    }
    if (range.begin < cleared.begin) left.push_back({range.begin, cleared.begin});
    if (cleared.end < range.end) left.push_back({cleared.end, range.end});
  }
  unreadable_ = std::move(left);
}

std::optional<ReferenceTransaction::Row> ReferenceTransaction::first_row(const std::string& begin,
                                                                         const std::string& end) const {
  std::string from = begin;
  while (from < end) {
    // The next key that is or was stored, or is written here.
    std::string key = end;
    {
      std::lock_guard lock(state_.mutex);
      const auto stored = state_.history.lower_bound(from);
      if (stored != state_.history.end()) key = std::min(key, stored->first);
    }
    const auto written = written_keys_.lower_bound(from);
    if (written != written_keys_.end()) key = std::min(key, *written);
    const bool at_end = key == end;
    check_way({from, at_end ? end : key + '\0'});
    if (at_end) break;
    if (auto found = value(key)) return Row{key, std::move(*found)};
    from = key + '\0';
  }
  return std::nullopt;
}

std::optional<ReferenceTransaction::Row> ReferenceTransaction::last_row(const std::string& begin,
                                                                        const std::string& end) const {
  std::string to = end;
  while (begin < to) {
    std::optional<std::string> key;
    {
      std::lock_guard lock(state_.mutex);
      const auto stored = state_.history.lower_bound(to);
      if (stored != state_.history.begin()) key = std::prev(stored)->first;
    }
    const auto written = written_keys_.lower_bound(to);
    if (written != written_keys_.begin()) key = std::max(key, std::optional(*std::prev(written)));
    if (key && *key < begin) key.reset();
    check_way({key.value_or(begin), to});
    if (!key) break;
    if (auto found = value(*key)) return Row{*key, std::move(*found)};
    to = *key;
  }
  return std::nullopt;
}

bool ReferenceTransaction::scan(const KeyRange& range, const RangeOptions& options, const RowVisitor& visit) {
  check_range(range.begin, range.end);
  check_young();
  auto [begin, end] = range;
  bool more = false;
  try {
    more = visit_rows(begin, end, options, visit);
  } catch (...) {
    add_read(range, options.isolation);
    throw;
  }
  if (begin >= end) {
    add_read(range, options.isolation);
  } else {
    add_read(options.reverse ? KeyRange{end, range.end} : KeyRange{range.begin, begin}, options.isolation);
  }
  return more;
}

bool ReferenceTransaction::visit_rows(std::string& begin, std::string& end, const RangeOptions& options,
                                      const RowVisitor& visit) const {
  std::size_t rows = 0;
  std::size_t bytes = 0;
  while (begin < end) {
    const auto row = options.reverse ? last_row(begin, end) : first_row(begin, end);
    if (!row) {
      begin = end;
      break;
    }
    (options.reverse ? end : begin) = options.reverse ? row->key : row->key + '\0';
    ++rows;
    bytes += row->key.size() + row->value.size();
    const bool go_on = visit(row->key, row->value);
    const bool full = (options.limit != 0 && rows >= options.limit) ||
                      (options.target_bytes != 0 && bytes >= options.target_bytes);
    if (full || !go_on) return full && go_on;
  }
  return false;
}

void ReferenceTransaction::add_write(Write write) {
  size_ += write.key.size() + write.value.size();
  if (write.kind != Write::Kind::clear_range && write.kind != Write::Kind::stamped_key) {
    written_keys_.insert(write.key);
  }
  writes_.push_back(std::move(write));
}

void ReferenceTransaction::set(std::string_view key, std::string_view value) {
  check_key(key);
  if (value.size() > kMaxValueBytes) throw Error(ErrorCode::value_too_large);
  add_write({Write::Kind::set, std::string(key), std::string(value)});
}

void ReferenceTransaction::clear(std::string_view key) {
  check_key(key);
  make_readable(just(key));
  add_write({Write::Kind::clear_range, std::string(key), std::string(key) + '\0'});
}

void ReferenceTransaction::clear_range(std::string_view begin, std::string_view end) {
  check_range(begin, end);
  if (begin == end) return;
  make_readable({std::string(begin), std::string(end)});
  add_write({Write::Kind::clear_range, std::string(begin), std::string(end)});
}

void ReferenceTransaction::atomic(AtomicOp op, std::string_view key, std::string_view operand) {
  check_key(key);
  if (operand.size() > kMaxValueBytes) throw Error(ErrorCode::value_too_large);
  add_write({Write::Kind::atomic, std::string(key), std::string(operand), op});
}

void ReferenceTransaction::set_versionstamped_key(std::string_view key, std::string_view value) {
  check_key(key);
  if (value.size() > kMaxValueBytes) throw Error(ErrorCode::value_too_large);
  const std::uint32_t offset = take_stamp_offset(key);
  unreadable_.push_back(possible_keys(key, offset, read_version_));
  add_write({Write::Kind::stamped_key, std::string(key), std::string(value), {}, offset});
}

void ReferenceTransaction::set_versionstamped_value(std::string_view key, std::string_view value) {
  check_key(key);
  if (value.size() > kMaxValueBytes) throw Error(ErrorCode::value_too_large);
  const std::uint32_t offset = take_stamp_offset(value);
  add_write({Write::Kind::stamped_value, std::string(key), std::string(value), {}, offset});
}

std::shared_ptr<Watch> ReferenceTransaction::watch(std::string_view key) {
  auto seen = get(key, Isolation::snapshot);
  auto watch = std::make_shared<Watch>();
  {
    std::lock_guard lock(state_.mutex);
    state_.admit(watch);
  }
  watches_.push_back({{std::string(key), std::move(seen), watch}, watch});
  return watch;
}

void ReferenceTransaction::add_read_conflict(const KeyRange& range) {
  check_range(range.begin, range.end);
  add_read(range, Isolation::serializable);
}

void ReferenceTransaction::add_write_conflict(const KeyRange& range) {
  check_range(range.begin, range.end);
  if (range.begin == range.end) return;
  size_ += range.begin.size() + range.end.size();
  write_conflicts_.push_back(range);
}

void ReferenceTransaction::on_error(const Error& error) {
  ended_ = true;
  clock_.sleep(retries_.next_pause(error, rng_));
  const Retries retries = retries_;
  reset();
  retries_ = retries;
}

void ReferenceTransaction::check_conflicts() const {
  for (auto commit = state_.commits.rbegin(); commit != state_.commits.rend(); ++commit) {
    if (commit->version <= read_version_) return;
    for (const auto& written : commit->written) {
      for (const auto& read : reads_) {
        if (overlap(written, read)) throw Error(ErrorCode::not_committed);
      }
    }
  }
}

void ReferenceTransaction::apply(Version version) {
  const std::string stamp = versionstamp_bytes(version, 0);
  Commit commit{version, write_conflicts_};
  const auto put = [&](const std::string& key, std::optional<std::string> value) {
    if (!value) state_.cleared.emplace_back(version, key);
    state_.history[key][version] = std::move(value);
    commit.written.push_back(just(key));
  };
  for (const auto& write : writes_) {
    switch (write.kind) {
      case Write::Kind::set: put(write.key, write.value); break;
      case Write::Kind::stamped_key: put(stamped(write.key, write.stamp_offset, stamp), write.value); break;
      case Write::Kind::stamped_value: put(write.key, stamped(write.value, write.stamp_offset, stamp)); break;
      case Write::Kind::atomic:
        put(write.key, apply_atomic(write.op, state_.value(write.key, version), write.value));
        break;
      case Write::Kind::clear_range: {
        if (write.key >= write.value) break;
        const auto last = state_.history.lower_bound(write.value);
        for (auto it = state_.history.lower_bound(write.key); it != last; ++it) {
          if (!state_.value(it->first, version)) continue;
          it->second[version] = std::nullopt;
          state_.cleared.emplace_back(version, it->first);
        }
        commit.written.push_back({write.key, write.value});
        break;
      }
    }
  }
  DIVAN_CHECK(state_.commits.empty() || state_.commits.back().version < version, "version {} follows {}",
              version, state_.commits.back().version);
  state_.commits.push_back(std::move(commit));
}

std::string ReferenceTransaction::do_commit() {
  check_open();
  ended_ = true;
  std::string stamp;
  std::vector<std::shared_ptr<Watch>> due;
  try {
    std::unique_lock lock(state_.mutex);
    if (!read_only()) stamp = commit_writes();
    for (auto& [entry, watch] : watches_) state_.waiting.push_back(std::move(entry));
    due = state_.take_due();
  } catch (const Error&) {
    cancel_watches();
    throw;
  }
  watches_.clear();
  for (const auto& watch : due) watch->fire();
  return stamp;
}

std::string ReferenceTransaction::commit_writes() {
  if (!reads_.empty()) check_young();
  if (size_ > kMaxTransactionBytes) throw Error(ErrorCode::transaction_too_large);
  check_conflicts();
  const Version version = state_.version + state_.options.version_step;
  DIVAN_CHECK(version > state_.version && state_.version >= read_version_,
              "version {} follows {} after a read of {}", version, state_.version, read_version_);
  apply(version);
  state_.version = version;
  state_.remove_cleared();
  return versionstamp_bytes(version, 0);
}

}  // namespace divan::kv::reference
