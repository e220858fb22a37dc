#include "divan/docs/bodies.h"

#include <algorithm>

#include "divan/docs/leaf_row.h"
#include "divan/docs/reader.h"

namespace divan::docs {
namespace {

// A range is left after this many rows, or bytes, in succession that are not wanted: to read a single row
// takes as long.
constexpr std::size_t kMaxPassedRows = 12;
constexpr std::size_t kMaxPassedBytes = 8 << 10;
// A range with fewer wanted rows was not worthwhile. The next ones are then read singly, more each time.
constexpr std::size_t kWorthwhile = 8;
constexpr std::size_t kMaxSingles = 128;

// Reads bodies of one row each.
class RangeReader {
 public:
  RangeReader(kv::Transaction& tx, const Database& database, std::span<const Leaf> leaves,
              std::vector<std::string>& bodies)
      : tx_(tx), bodies_(bodies) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaves[i].chunks == 1) wanted_.push_back({database.keys().body(leaves[i].sequence, 0), i});
    }
    std::ranges::sort(wanted_, {}, &Wanted::key);
  }

  void read() {
    std::size_t singles = kWorthwhile;
    while (next_ < wanted_.size()) {
      const std::size_t before = next_;
      read_range();
      if (next_ - before >= kWorthwhile) {
        singles = kWorthwhile;
        continue;
      }
      for (std::size_t i = 0; i < singles && next_ < wanted_.size(); ++i) read_single();
      singles = std::min(2 * singles, kMaxSingles);
    }
  }

 private:
  struct Wanted {
    std::string key;
    std::size_t index;  // of the body
  };

  // Reads rows from the next wanted one on, until too many of them are not wanted.
  void read_range() {
    std::size_t passed = 0;
    std::size_t passed_bytes = 0;
    const auto is_left = [&] { return passed >= kMaxPassedRows || passed_bytes >= kMaxPassedBytes; };
    const kv::KeyRange range{wanted_[next_].key, wanted_.back().key + '\0'};
    tx_.scan(range, {.isolation = kv::Isolation::snapshot},
             [&](std::string_view key, std::string_view value) {
               if (key < wanted_[next_].key) {
                 ++passed;
                 passed_bytes += value.size();
                 return !is_left();
               }
               if (key != wanted_[next_].key) throw damaged_document();
               bodies_[wanted_[next_].index] = value;
               passed = passed_bytes = 0;
               return ++next_ < wanted_.size();
             });
    if (next_ < wanted_.size() && !is_left()) throw damaged_document();
  }

  void read_single() {
    auto body = tx_.get(wanted_[next_].key, kv::Isolation::snapshot);
    if (!body) throw damaged_document();
    bodies_[wanted_[next_].index] = *std::move(body);
    ++next_;
  }

  kv::Transaction& tx_;
  std::vector<std::string>& bodies_;
  std::vector<Wanted> wanted_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<std::string> read_bodies(kv::Transaction& tx, const Database& database,
                                     std::span<const Leaf> leaves) {
  std::vector<std::string> bodies(leaves.size());
  const bool in_ranges = !tx.is_remote() && leaves.size() >= kWorthwhile;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!in_ranges || leaves[i].chunks != 1) bodies[i] = read_body(tx, database, leaves[i]);
  }
  if (in_ranges) RangeReader(tx, database, leaves, bodies).read();
  return bodies;
}

void remove_body(kv::Transaction& tx, const Database& database, const kv::Versionstamp& sequence,
                 std::uint32_t chunks, std::uint32_t attachments, ContentWriter& contents) {
  if (attachments > 0) contents.remove_references(attachments_of(read_body(tx, database, sequence, chunks)));
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) tx.clear(database.keys().body(sequence, chunk));
}

}  // namespace divan::docs
