// The state of the reference engine.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "divan/base/mutex.h"
#include "divan/kv/reference/options.h"

namespace divan::kv::reference {

/// What a commit changed.
struct Commit {
  Version version;
  std::vector<KeyRange> written;
};

/// A watch that waits.
struct Waiting {
  std::string key;
  std::optional<std::string> seen;
  std::weak_ptr<Watch> watch;
};

/// All of it under one mutex.
struct State {
  using Values = std::map<Version, std::optional<std::string>>;

  explicit State(const Options& the_options) : options(the_options) {}

  const Options options;
  mutable Mutex mutex{MutexRank::reference_store, "State::mutex"};  // protects the members below
  Version version = 0;
  std::map<std::string, Values, std::less<>> history;
  std::vector<Commit> commits;
  std::multiset<Version> read_versions;                 // of the transactions that exist
  std::deque<std::pair<Version, std::string>> cleared;  // keys, and when they were cleared, in order
  std::vector<Waiting> waiting;
  // Including those that are not set yet.
  std::vector<std::weak_ptr<Watch>> watches;

  // With the mutex held.

  std::optional<std::string> value(std::string_view key, Version at) const;
  /// Removes keys that are cleared for all transactions: otherwise scans take longer with each cleared key.
  void remove_cleared();
  /// Throws too_many_watches.
  void admit(const std::shared_ptr<Watch>& watch);
  /// Removes and returns the watches that are to fire, and removes those without owners.
  std::vector<std::shared_ptr<Watch>> take_due();
};

inline bool overlap(const KeyRange& a, const KeyRange& b) { return a.begin < b.end && b.begin < a.end; }

}  // namespace divan::kv::reference
