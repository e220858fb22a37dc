// Visiting rows in the order of their keys where the store cannot keep it: keys that are too long to stand in
// a row's key and begin alike (rows.h). Such rows are neighbours in the store, a *run*, in the order of their
// keys' digests. A visit goes along the store; when it meets a run, it finds the distinct keys of the run,
// sorts them, visits the rows of each (which are neighbours, in the order of document ids) and goes on behind
// the run.
//
// A row's place here is what its key in the store would be without a limit: the key of the view, the whole
// encoded key, the id and the number. Bounds of ranges are of that kind, too. No encoding is a prefix of
// another, so the first kMaxWholeKeyBytes of a long key are the beginning of no other row's key but those of
// its run: a bound that is cut there is before or behind the run.
#include <map>

#include "divan/base/error.h"
#include "divan/index/views/rows.h"

namespace divan::index::views {
namespace {

// Keys of a run that are held at once; the run is read again for each so many.
constexpr std::size_t kMaxHeldBytes = 8'000'000;

// What a chunk of a row has behind the row's place: ranges are of keys.
constexpr std::string_view kFirstChunk("\0\0", 2);

// The first key behind all that begin with a prefix, whatever byte follows it.
std::string behind(std::string_view prefix) {
  std::string key(prefix.substr(0, prefix.find_last_not_of('\xff') + 1));
  ++key.back();
  return key;
}

bool is_inside(const RowRange& range, std::string_view place) {
  const std::string key = std::string(place) + std::string(kFirstChunk);
  return key >= range.begin && key < range.end;
}

bool is_long_bound(std::string_view bound, std::size_t prefix) {
  return bound.size() > prefix + kMaxWholeKeyBytes;
}

std::string cut(std::string_view bound, std::size_t prefix) {
  return std::string(bound.substr(0, prefix + kMaxWholeKeyBytes));
}

// Keys of the store between which the rows of a range lie, perhaps with others.
RowRange stored_range(const RowRange& range, std::size_t prefix) {
  RowRange stored = range;
  if (is_long_bound(range.begin, prefix)) stored.begin = cut(range.begin, prefix);
  if (is_long_bound(range.end, prefix)) stored.end = behind(cut(range.end, prefix));
  return stored;
}

// The rows of a run, whose keys in the store begin with `run`, that lie in a range.
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

  // False if the visitor has enough.
  bool visit(const ViewRowVisitor& visit) {
    bool more = true;
    while (more) {
      more = find_keys();
      std::vector<std::pair<std::string, std::string>> keys(found_.begin(), found_.end());
      if (descending_) std::reverse(keys.begin(), keys.end());
      for (const auto& [key, stored] : keys) {
        if (!visit_key(key, stored, visit)) return false;
      }
      if (!keys.empty()) last_ = std::move(keys.back().first);
    }
    return true;
  }

 private:
  // Whether rows with this key may lie in the range, and were not visited yet.
  bool is_wanted(std::string_view key) const {
    if (last_ && (descending_ ? key >= *last_ : key <= *last_)) return false;
    const std::string place = run_.substr(0, prefix_) + std::string(key);
    return place < range_.end && place + '\xff' > range_.begin;
  }

  // Finds the next keys, as many as are held at once; true if there are more.
  bool find_keys() {
    found_.clear();
    bool more = false;
    std::size_t bytes = 0;
    std::string at = run_;
    const std::string end = behind(run_);
    for (;;) {
      std::string key, stored;
      visit_stored_rows(tx_, keys_, view_, {at, end}, false, [&](const ViewRow& row) {
        if (!is_long_key(row.encoded_key)) throw internal_error("A row of a view in the store is damaged.");
        key = row.encoded_key;
        stored = row.place.substr(0, run_.size() + kKeyDigestBytes);
        return false;
      });
      if (stored.empty()) return more;
      at = behind(stored);
      if (!is_wanted(key)) continue;
      bytes += key.size() + stored.size();
      found_.emplace(std::move(key), std::move(stored));
      while (bytes > kMaxHeldBytes && found_.size() > 1) {
        const auto furthest = descending_ ? found_.begin() : std::prev(found_.end());
        bytes -= furthest->first.size() + furthest->second.size();
        found_.erase(furthest);
        more = true;
      }
    }
  }

  bool visit_key(const std::string& key, const std::string& stored, const ViewRowVisitor& visit) const {
    bool going_on = true;
    std::string place;
    visit_stored_rows(tx_, keys_, view_, {stored, behind(stored)}, descending_, [&](const ViewRow& row) {
      place = run_.substr(0, prefix_) + key;
      place += row.place.substr(stored.size());
      if (!is_inside(range_, place)) return true;
      ViewRow shown = row;
      shown.place = place;
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
  std::map<std::string, std::string> found_;  // encoded keys, and what of the store's keys their rows share
  std::optional<std::string> last_;           // the key that was visited last
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
    split.middle.begin = behind(cut(range.begin, prefix));
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
        run = row.place.substr(0, prefix + kMaxWholeKeyBytes);
        return false;
      }
      if (cut_bounds && !is_inside(range, row.place)) return true;
      return visit(row);
    });
    if (run.empty()) return;
    const std::string begin = run, end = behind(run);
    if (!RunVisit(tx, keys, view, std::move(run), range, descending).visit(visit)) return;
    (descending ? stored.end : stored.begin) = descending ? begin : end;
  }
}

}  // namespace divan::index::views
