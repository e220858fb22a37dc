#include "divan/workers/ring.h"

namespace divan::workers {

// FNV-1a and the last step of SplitMix64, so that names that differ in their last digit are far apart. All
// nodes of a cluster must use the same hash.
std::uint64_t Ring::position(std::string_view role, std::string_view id) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 1099511628211u; };
  for (const char c : role) add(static_cast<unsigned char>(c));
  add(0);
  for (const char c : id) add(static_cast<unsigned char>(c));
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

Ring::Ring(const Registry::Roster& roster) {
  const auto nodes = roster.roles.find(kNodeRole);
  if (nodes == roster.roles.end()) return;
  for (const auto& [id, entry] : nodes->second->workers) positions_.emplace(position(kNodeRole, id), id);
}

bool Ring::observes(std::string_view node, std::string_view role, std::string_view id) const {
  const std::uint64_t start = position(role, id);
  auto next = positions_.upper_bound(start);
  std::size_t counted = 0;
  for (std::size_t i = 0; i < positions_.size() && counted < kClosestObservers; ++i, ++next) {
    if (next == positions_.end()) next = positions_.begin();
    if (next->first == start) continue;  // the worker itself
    if (next->second == node) return true;
    ++counted;
  }
  return false;
}

}  // namespace divan::workers
