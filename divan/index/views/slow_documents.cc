#include "divan/index/views/slow_documents.h"

namespace divan::index::views {

void SlowDocuments::add(const Key& key, Duration invocation, std::string what) {
  std::lock_guard lock(mutex_);
  const auto [entry, is_new] = entries_.insert_or_assign(key, Entry{invocation, std::move(what)});
  if (!is_new) return;
  by_age_.emplace_back(entry);
  if (by_age_.size() <= kMax) return;
  entries_.erase(by_age_.front());
  by_age_.pop_front();
}

std::optional<std::string> SlowDocuments::find(const Key& key, Duration invocation) const {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.invocation < invocation) return std::nullopt;
  return found->second.what;
}

bool SlowDocuments::empty() const {
  std::lock_guard lock(mutex_);
  return entries_.empty();
}

}  // namespace divan::index::views
