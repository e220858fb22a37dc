#include "divan/index/search/merger.h"

#include <algorithm>

#include "divan/index/search/live_documents.h"

namespace divan::index::search {
namespace {

// A piece ends with the row that brings it to this many rows or bytes.
constexpr std::size_t kPieceRows = 5'000;
constexpr std::size_t kPieceBytes = 1'000'000;

struct Row {
  std::string key;
  std::string value;
  RowKey parsed;
};

class Piece final : public IndexWork {
 public:
  void write(kv::Transaction& tx, const IndexKeys& index_keys) const override {
    for (const auto& key : clears) tx.clear(key);
    for (const auto& [key, value] : writes) tx.set(key, value);
    tx.set(SearchKeys(index_keys).state(), state.encode());
  }

  std::vector<std::string> clears;
  std::vector<std::pair<std::string, std::string>> writes;
  IndexState state;  // after the piece
};

// The level with the most segments, if it has enough.
std::optional<std::size_t> level_to_merge(const IndexState& state) {
  const auto most = std::ranges::max_element(state.segments);
  if (most == state.segments.end() || *most < kMergedSegments) return std::nullopt;
  return most - state.segments.begin();
}

void begin_merge(IndexState& state, std::size_t level) {
  auto& merge = state.merge.emplace();
  merge.level = merge.target = static_cast<int>(level);
  merge.end = state.next_number;
  merge.segments = state.segments[level];
  for (auto count = merge.segments; count >= kMergedSegments; count /= kMergedSegments) ++merge.target;
}

void end_merge(IndexState& state) {
  const auto target = static_cast<std::size_t>(state.merge->target);
  if (state.segments.size() <= target) state.segments.resize(target + 1);
  state.segments[static_cast<std::size_t>(state.merge->level)] -= state.merge->segments;
  ++state.segments[target];
  state.merge.reset();
}

Column column_of(const RowKey& key) {
  return Column{static_cast<int>(kv::tuple::Reader(key.suffix).take_int().value_or(0))};
}

// Merges the entries of live documents in rows with the same suffix.
void merge_rows(std::span<const Row> rows, const std::string& target, LiveDocuments& live, Piece& piece) {
  EntryWriter writer;
  const auto flush = [&](const std::string& suffix) {
    if (writer.empty()) return;
    std::string key = target + suffix;
    kv::tuple::Packer(key).integer(writer.first());
    piece.writes.emplace_back(std::move(key), writer.value());
    writer = {};
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RowKey& key = rows[i].parsed;
    if (i > 0 && key.suffix != rows[i - 1].parsed.suffix) flush(rows[i - 1].parsed.suffix);
    EntryReader reader(column_of(key), key.first, rows[i].value);
    for (Entry entry; reader.next(entry);) {
      if (!live.contains(entry.number)) continue;
      writer.add(entry.number, entry.payload);
      if (writer.is_full()) flush(key.suffix);
    }
  }
  if (!rows.empty()) flush(rows.back().parsed.suffix);
}

}  // namespace

bool is_merge_due(const IndexState& state) {
  return state.merge.has_value() || level_to_merge(state).has_value();
}

std::unique_ptr<IndexWork> merge_piece(kv::Database& store, const IndexKeys& index_keys) {
  const SearchKeys keys(index_keys);
  const auto tx = store.begin();
  auto piece = std::make_unique<Piece>();
  IndexState& state = piece->state;
  state = read_state(*tx, keys);
  if (!state.merge) {
    const auto level = level_to_merge(state);
    if (!level) return nullptr;
    begin_merge(state, *level);
  }
  auto& merge = *state.merge;
  const std::string level = keys.level(merge.level);
  kv::KeyRange range = kv::below(level);
  if (!merge.cursor.empty()) range.begin = merge.cursor;

  std::vector<Row> rows;
  std::size_t visited = 0, bytes = 0;
  bool is_cut = false;
  tx->scan(range, {.isolation = kv::Isolation::snapshot}, [&](std::string_view key, std::string_view value) {
    if (visited == kPieceRows || bytes >= kPieceBytes) {
      is_cut = true;
      merge.cursor = key;
      return false;
    }
    ++visited;
    bytes += key.size() + value.size();
    auto parsed = parse_row_key(key.substr(level.size()));
    // Rows that were added since the merge began remain.
    if (parsed.first < merge.end) rows.push_back({std::string(key), std::string(value), std::move(parsed)});
    return true;
  });

  std::vector<DocumentNumber> numbers;
  for (const auto& row : rows) {
    EntryReader reader(column_of(row.parsed), row.parsed.first, row.value);
    for (Entry entry; reader.next(entry);) {
      if (numbers.empty() || numbers.back() != entry.number) numbers.push_back(entry.number);
    }
  }
  LiveDocuments live(*tx, keys);
  live.read(numbers);
  for (const auto& row : rows) piece->clears.push_back(row.key);
  merge_rows(rows, keys.level(merge.target), live, *piece);
  if (!is_cut) end_merge(state);
  return piece;
}

}  // namespace divan::index::search
