// The reads that a transaction prefetches, in waves that are each sent at once.
//
// The client also caches what it has read, but a call takes two context switches. So prefetched keys and
// ranges are returned from here, unless the transaction has written them since.
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
  Prefetched(RawTransaction& tx, const Subspace& subspace) : tx_(tx), subspace_(subspace) {}

  /// Sends the reads, except of what is `unreadable`. Of two ranges that overlap, the later one may be left
  /// out.
  void ask(const Prefetch& reads, const RangeSet& unreadable);
  void forget();

  /// Keeps the value of a key that was not prefetched, in case it is read again.
  void keep(std::string_view key, const std::optional<std::string>& value);

  /// Drops what the transaction writes.
  void written(std::string_view key);
  void written(std::string_view begin, std::string_view end);

  struct Rows {
    KeyRange covered;            // these are all of it,
    std::vector<KeyValue> rows;  // in the order of their keys
  };

  /// The value of a key, or the rows of what covers the first key of a scan (the last one with `reverse`);
  /// null if they were not prefetched or the prefetch failed; the read itself then reports the error. Waits
  /// for the whole wave.
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

  // Waits for the waves for which `wanted` returns true.
  template <class Wanted>
  void wait_for(const Wanted& wanted);
  void wait(const Wave& wave);
  void keep(const Wave::Page& page);
  const Rows* covering(const KeyRange& range, bool reverse) const;

  RawTransaction& tx_;
  const Subspace& subspace_;
  std::list<Wave> waves_;  // sent and not waited for yet
  std::map<std::string, std::optional<std::string>, std::less<>> values_;
  std::map<std::string, Rows, std::less<>> rows_;  // by the begin of what they cover
};

}  // namespace divan::kv::fdb
