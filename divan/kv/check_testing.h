// For the tests of checks: a store's rows in memory, where they can be damaged.
#pragma once

#include <algorithm>
#include <map>

#include "divan/kv/check.h"

namespace divan::kv::testing {

class MapRows final : public RowSource {
 public:
  using Map = std::map<std::string, std::string>;

  explicit MapRows(Map map) : map_(std::move(map)) {}
  explicit MapRows(Database& store) {
    store.dump([&](std::string_view key, std::string_view value) {
      map_.emplace(key, value);
      return true;
    });
  }
  void scan(const KeyRange& range, const RowVisitor& visit) override {
    for (auto it = map_.lower_bound(range.begin); it != map_.end() && it->first < range.end; ++it) {
      if (!visit(it->first, it->second)) return;
    }
  }
  Map& map() { return map_; }

 private:
  Map map_;
};

/// Passes all rows to the checks. Returns how many none of them knew.
inline std::size_t run_checks(RowSource& rows, std::initializer_list<RowCheck*> checks) {
  std::size_t unknown = 0;
  rows.scan({"", "\xff"}, [&](std::string_view key, std::string_view value) {
    if (std::none_of(checks.begin(), checks.end(), [&](auto* check) { return check->row(key, value); }))
      ++unknown;
    return true;
  });
  for (auto* check : checks) check->finish(rows);
  return unknown;
}

/// Removes each row of the store in turn. Returns the keys of those without which `findings_of(rows)` is
/// empty.
template <class FindingsOf>
std::vector<std::string> unmissed_rows(Database& store, FindingsOf&& findings_of) {
  const MapRows whole(store);
  std::vector<std::string> keys;
  MapRows copy(whole);
  const auto original = copy.map();
  for (const auto& [key, value] : original) {
    copy.map().erase(key);
    if (findings_of(copy).count() == 0) keys.push_back(key);
    copy.map().emplace(key, value);
  }
  return keys;
}

}  // namespace divan::kv::testing
