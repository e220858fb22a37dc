#include "divan/kv/reference/reference.h"

#include "divan/kv/reference/transaction.h"

namespace divan::kv::reference {

std::optional<std::string> State::value(std::string_view key, Version at) const {
  const auto values = history.find(key);
  if (values == history.end()) return std::nullopt;
  const auto later = values->second.upper_bound(at);
  return later == values->second.begin() ? std::nullopt : std::prev(later)->second;
}

void State::remove_cleared() {
  const Version oldest = read_versions.empty() ? version : *read_versions.begin();
  for (; !cleared.empty() && cleared.front().first <= oldest; cleared.pop_front()) {
    const auto key = history.find(cleared.front().second);
    if (key == history.end()) continue;
    const auto& [last, value] = *key->second.rbegin();
    if (last <= oldest && !value) history.erase(key);
  }
}

void State::admit(const std::shared_ptr<Watch>& watch) {
  std::erase_if(watches, [](const std::weak_ptr<Watch>& entry) {
    const auto held = entry.lock();
    return held == nullptr || held->fired() || held->cancelled();
  });
  if (watches.size() >= options.max_watches) throw Error(ErrorCode::too_many_watches);
  watches.push_back(watch);
}

std::vector<std::shared_ptr<Watch>> State::take_due() {
  std::vector<std::shared_ptr<Watch>> due;
  std::erase_if(waiting, [&](const Waiting& entry) {
    auto watch = entry.watch.lock();
    if (watch == nullptr) return true;
    if (value(entry.key, version) == entry.seen) return false;
    due.push_back(std::move(watch));
    return true;
  });
  return due;
}

ReferenceDatabase::ReferenceDatabase(const Clock& clock, Rng& rng, const Options& options)
    : clock_(clock), rng_(rng), state_(std::make_unique<State>(options)) {}

ReferenceDatabase::~ReferenceDatabase() {
  for (const auto& entry : state_->waiting) {
    if (const auto watch = entry.watch.lock()) watch->cancel();
  }
}

std::unique_ptr<Transaction> ReferenceDatabase::begin() { return begin(clock_, rng_); }

std::unique_ptr<Transaction> ReferenceDatabase::begin(const Clock& clock, Rng& rng) {
  return std::make_unique<ReferenceTransaction>(*state_, clock, rng);
}

Version ReferenceDatabase::dump(const RowVisitor& visit) {
  std::vector<KeyValue> rows;
  Version version = 0;
  {
    std::lock_guard lock(state_->mutex);
    version = state_->version;
    for (const auto& [key, values] : state_->history) {
      if (auto value = state_->value(key, version)) rows.push_back({key, std::move(*value)});
    }
  }
  for (const auto& row : rows) {
    if (!visit(row.key, row.value)) break;
  }
  return version;
}

std::int64_t ReferenceDatabase::estimate_bytes(const KeyRange& range) {
  std::lock_guard lock(state_->mutex);
  std::size_t bytes = 0;
  for (auto it = state_->history.lower_bound(range.begin);
       it != state_->history.end() && it->first < range.end; ++it) {
    if (const auto value = state_->value(it->first, state_->version))
      bytes += it->first.size() + value->size();
  }
  return static_cast<std::int64_t>(bytes);
}

void ReferenceDatabase::advance_version(Version at_least) {
  std::lock_guard lock(state_->mutex);
  state_->version = std::max(state_->version, at_least);
}

Version ReferenceDatabase::version() const {
  std::lock_guard lock(state_->mutex);
  return state_->version;
}

}  // namespace divan::kv::reference
