// What a transaction reads ahead: the answers of one or several waves of reads, each asked for in one go.
//
// The client remembers what it has read, but asking it takes two changes of thread; so what was prefetched is
// answered from here, unless the transaction has written there since: then the client knows better.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "divan/kv/fdb/store.h"
#include "divan/kv/range_set.h"

namespace divan::kv::fdb {

/// Not thread-safe. The transaction must outlive it.
class Prefetched {
 public:
  Prefetched(RawTransaction& tx, const Place& place) : tx_(tx), place_(place) {}

  /// Asks for them, but not for what is `unreadable`. Of two ranges that overlap, the later one may be left
  /// out.
  void ask(const Prefetch& reads, const RangeSet& unreadable);
  void forget();

  /// The value of a key that nobody prefetched: perhaps it is asked for again.
  void keep(std::string_view key, const std::optional<std::string>& value);

  /// What the transaction writes is not answered from here any more.
  void written(std::string_view key);
  void written(std::string_view begin, std::string_view end);

  struct Rows {
    KeyRange covered;            // these are all of it,
    std::vector<KeyValue> rows;  // in the order of their keys
  };

  /// The value of a key, or the rows of what covers the first key of a scan (the last one with `reverse`);
  /// null if they were not prefetched, or could not be had: whoever reads them is told why. They wait for all
  /// of their wave.
  const std::optional<std::string>* find(std::string_view key);
  const Rows* find(const KeyRange& range, bool reverse);

 private:
  struct Wave {
    struct Page {
      Prefetch::Range asked;
      Future answer;
    };
    std::map<std::string, Future, std::less<>> values;
    std::vector<Page> pages;
  };

  // Waits for the waves of which `wanted` says so.
  template <class Wanted>
  void wait_for(const Wanted& wanted);
  void wait(const Wave& wave);
  void keep(const Wave::Page& page);
  const Rows* covering(const KeyRange& range, bool reverse) const;

  RawTransaction& tx_;
  const Place& place_;
  std::list<Wave> waves_;  // asked for, and nobody has waited for them
  std::map<std::string, std::optional<std::string>, std::less<>> values_;
  std::map<std::string, Rows, std::less<>> rows_;  // by the begin of what they cover
};

}  // namespace divan::kv::fdb
