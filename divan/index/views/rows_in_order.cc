// Visits rows in the order of their keys where the store has a different order: among keys that are too long
// to be stored whole in a row's key and have a common prefix (rows.h). Such rows are adjacent in the store, a
// *run*, sorted by the digests of their keys. When a visit reaches a run, it finds the distinct keys of the
// run, sorts them, visits the rows of each (which are adjacent, sorted by document id) and continues after
// the run.
//
// In this file the position of a row is the key that it would have in the store without a limit: the key of
// the view, the whole encoded key, the id and the number. Bounds of ranges have the same form. No encoding is
// a prefix of another, so the first kMaxWholeKeyBytes of a long key begin only the keys of its run: a bound
// that is truncated to that length is before or after the whole run.
#include <algorithm>
#include <map>

#include "divan/base/error.h"
#include "divan/index/views/rows.h"

namespace divan::index::views {
namespace {

// Maximum bytes of a run's keys held in memory; the run is read again for each batch of keys.
constexpr std::size_t kMaxHeldBytes = 8'000'000;

// The part of the key of a row's first chunk after the position: bounds of ranges are keys of chunks.
constexpr std::string_view kFirstChunk("\0\0", 2);

// The first key after all keys with a prefix.
std::string after_prefix(std::string_view prefix) {
  std::string key(prefix.substr(0, prefix.find_last_not_of('\xff') + 1));
  ++key.back();
  return key;
}

bool is_inside(const RowRange& range, std::string_view position) {
  const std::string key = std::string(position) + std::string(kFirstChunk);
  return key >= range.begin && key < range.end;
}

bool is_long_bound(std::string_view bound, std::size_t prefix) {
  return bound.size() > prefix + kMaxWholeKeyBytes;
}

std::string cut(std::string_view bound, std::size_t prefix) {
  return std::string(bound.substr(0, prefix + kMaxWholeKeyBytes));
}

// The range of the store that contains the rows of a range, and perhaps others.
RowRange stored_range(const RowRange& range, std::size_t prefix) {
  RowRange stored = range;
  if (is_long_bound(range.begin, prefix)) stored.begin = cut(range.begin, prefix);
  if (is_long_bound(range.end, prefix)) stored.end = after_prefix(cut(range.end, prefix));
  return stored;
}

// Visits the rows of a run, whose keys in the store begin with `run`, that are in a range.
class RunVisit {
 public:
  RunVisit(kv::Transaction& tx, const IndexKeys& keys, int view, std::string run, const RowRange& range,
           bool descending)
      : tx_(tx),
        keys_(keys),
        view_(view),
        prefix_(run.size() - kMaxWholeKeyBytes),
        run_(std::move(run)),
        range_(range),
        descending_(descending) {}

  // Returns false if the visitor stopped.
  bool visit(const ViewRowVisitor& visit) {
    bool more = true;
    while (more) {
      more = find_keys();
      std::vector<std::pair<std::string, std::string>> keys(run_keys_.begin(), run_keys_.end());
      if (descending_) std::reverse(keys.begin(), keys.end());
      for (const auto& [key, stored] : keys) {
        if (!visit_key(key, stored, visit)) return false;
      }
      if (!keys.empty()) last_ = std::move(keys.back().first);
    }
    return true;
  }

 private:
  // Returns true if rows with this key may be in the range, and were not visited yet.
  bool is_wanted(std::string_view key) const {
    if (last_ && (descending_ ? key >= *last_ : key <= *last_)) return false;
    const std::string position = run_.substr(0, prefix_) + std::string(key);
    return position < range_.end && position + '\xff' > range_.begin;
  }

  // Finds the next batch of keys; returns true if there are more.
  bool find_keys() {
    run_keys_.clear();
    bool more = false;
    std::size_t bytes = 0;
    std::string at = run_;
    const std::string end = after_prefix(run_);
    for (;;) {
      std::string key, stored;
      visit_stored_rows(tx_, keys_, view_, {at, end}, false, [&](const ViewRow& row) {
        if (!is_long_key(row.encoded_key)) throw internal_error("A row of a view in the store is damaged.");
        key = row.encoded_key;
        stored = row.position.substr(0, run_.size() + kKeyDigestBytes);
        return false;
      });
      if (stored.empty()) return more;
      at = after_prefix(stored);
      if (!is_wanted(key)) continue;
      bytes += key.size() + stored.size();
      run_keys_.emplace(std::move(key), std::move(stored));
      while (bytes > kMaxHeldBytes && run_keys_.size() > 1) {
        const auto furthest = descending_ ? run_keys_.begin() : std::prev(run_keys_.end());
        bytes -= furthest->first.size() + furthest->second.size();
        run_keys_.erase(furthest);
        more = true;
      }
    }
  }

  bool visit_key(const std::string& key, const std::string& stored, const ViewRowVisitor& visit) const {
    bool going_on = true;
    std::string position;
    visit_stored_rows(tx_, keys_, view_, {stored, after_prefix(stored)}, descending_,
                      [&](const ViewRow& row) {
                        position = run_.substr(0, prefix_) + key;
                        position += row.position.substr(stored.size());
                        if (!is_inside(range_, position)) return true;
                        ViewRow shown = row;
                        shown.position = position;
                        return going_on = visit(shown);
                      });
    return going_on;
  }

  kv::Transaction& tx_;
  const IndexKeys& keys_;
  const int view_;
  const std::size_t prefix_;
  const std::string run_;
  const RowRange& range_;
  const bool descending_;
  // Encoded keys, with the common prefix of their rows in the store.
  std::map<std::string, std::string> run_keys_;
  std::optional<std::string> last_;  // the key that was visited last
};

}  // namespace

bool has_long_bounds(const IndexKeys& keys, int view, const RowRange& range) {
  const std::size_t prefix = all_rows(keys, view).begin.size();
  return is_long_bound(range.begin, prefix) || is_long_bound(range.end, prefix);
}

SplitRange split_at_long_bounds(const IndexKeys& keys, int view, const RowRange& range) {
  const std::size_t prefix = all_rows(keys, view).begin.size();
  SplitRange split{.first = {}, .middle = range, .last = {}};
  if (is_long_bound(range.begin, prefix)) {
    split.middle.begin = after_prefix(cut(range.begin, prefix));
    split.first = {range.begin, std::min(split.middle.begin, range.end)};
  }
  if (is_long_bound(range.end, prefix)) {
    split.middle.end = cut(range.end, prefix);
    split.last = {std::max(split.middle.end, split.middle.begin), range.end};
  }
  return split;
}

void visit_rows(kv::Transaction& tx, const IndexKeys& keys, int view, const RowRange& range, bool descending,
                const ViewRowVisitor& visit) {
  if (range.begin >= range.end) return;
  const std::size_t prefix = all_rows(keys, view).begin.size();
  const bool cut_bounds = has_long_bounds(keys, view, range);
  RowRange stored = stored_range(range, prefix);
  while (stored.begin < stored.end) {
    std::string run;
    visit_stored_rows(tx, keys, view, stored, descending, [&](const ViewRow& row) {
      if (is_long_key(row.encoded_key)) {
        run = row.position.substr(0, prefix + kMaxWholeKeyBytes);
        return false;
      }
      if (cut_bounds && !is_inside(range, row.position)) return true;
      return visit(row);
    });
    if (run.empty()) return;
    const std::string begin = run, end = after_prefix(run);
    if (!RunVisit(tx, keys, view, std::move(run), range, descending).visit(visit)) return;
    (descending ? stored.end : stored.begin) = descending ? begin : end;
  }
}

}  // namespace divan::index::views
