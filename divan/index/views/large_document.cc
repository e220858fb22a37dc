#include "divan/index/views/large_document.h"

#include <set>

#include "divan/index/views/reduce_nodes.h"
#include "divan/kv/chunks.h"

namespace divan::index::views {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

constexpr int kLargeDocumentPart = 5;
// Maximum size of one transaction.
constexpr std::size_t kMaxWrittenBytes = 2'000'000;
// Approximate size of a row's key in the store, without the row's own key.
constexpr std::size_t kKeyBytes = 64;

struct Record {
  std::string id;
  std::uint64_t removed = 0;  // number of rows of its list that were removed after an interrupted build
};

std::optional<Record> read_record(kv::Transaction& tx, const IndexKeys& keys,
                                  kv::Isolation isolation = kv::Isolation::snapshot) {
  const auto value = tx.get(large_document_key(keys), isolation);
  if (!value) return std::nullopt;
  Reader reader(*value);
  auto id = reader.take_string();
  const auto removed = reader.take_int();
  if (!id || !removed || *removed < 0 || !reader.at_end())
    throw internal_error("The record of a large document of an index is damaged.");
  return Record{*std::move(id), static_cast<std::uint64_t>(*removed)};
}

void write_record(kv::Transaction& tx, const IndexKeys& keys, const Record& record) {
  std::string value;
  Packer(value).string(record.id).integer(static_cast<std::int64_t>(record.removed));
  tx.set(large_document_key(keys), value);
}

std::size_t clearing_bytes(std::string_view id, const RowPosition& position) {
  return position.chunks * (position.encoded_key.size() + id.size() + kKeyBytes);
}

void clear_row(kv::Transaction& tx, const IndexKeys& keys, std::string_view id, const RowPosition& position) {
  for (std::uint32_t chunk = 0; chunk < position.chunks; ++chunk) tx.clear(position.key(keys, id, chunk));
}

// The end of the piece that begins at `first` and fits in one transaction; it has at least one element unless
// there are none left.
std::size_t end_of_piece(std::size_t first, std::size_t size, std::size_t most_bytes,
                         const std::function<std::size_t(std::size_t)>& cost) {
  std::size_t bytes = 0;
  std::size_t end = first;
  while (end < size && (end == first || bytes < most_bytes)) bytes += cost(end++);
  return end;
}

class Removal final : public IndexWork {
 public:
  Removal(Record before, std::vector<RowPosition> positions, std::size_t end)
      : before_(std::move(before)), positions_(std::move(positions)), end_(end) {}

  void write(kv::Transaction& tx, const IndexKeys& keys) const override {
    const auto record = read_record(tx, keys, kv::Isolation::serializable);
    if (!record || record->id != before_.id || record->removed != before_.removed)
      throw conflict("Another writer has changed the index.");
    for (std::size_t i = before_.removed; i < end_; ++i) clear_row(tx, keys, before_.id, positions_[i]);
    if (end_ < positions_.size()) return write_record(tx, keys, {before_.id, end_});
    clear_list(tx, keys, before_.id);
    tx.clear(large_document_key(keys));
  }

 private:
  const Record before_;
  const std::vector<RowPosition> positions_;
  const std::size_t end_;
};

}  // namespace

std::string large_document_key(const IndexKeys& keys) { return keys.part(kLargeDocumentPart); }

std::optional<std::string> read_hidden_document(kv::Transaction& tx, const IndexKeys& keys) {
  auto record = read_record(tx, keys);
  if (!record) return std::nullopt;
  return std::move(record->id);
}

std::size_t clearing_bytes(std::string_view id, const std::vector<RowPosition>& positions) {
  std::size_t bytes = 0;
  for (const RowPosition& position : positions) bytes += clearing_bytes(id, position);
  return bytes;
}

LargeDocument::LargeDocument(Rows rows) : rows_(std::move(rows)), list_(encode_list(rows_.list)) {}

bool LargeDocument::prepare() {
  const std::size_t chunks = kv::chunk_count(list_.size());
  // Steps without work are skipped.
  if (next_ == Step::clear && rows_.before.empty()) next_ = Step::list;
  if (next_ == Step::list && list_.empty()) next_ = Step::end;
  step_ = next_;
  switch (step_) {
    case Step::begin: next_ = Step::clear; break;
    case Step::clear:
      plan_piece(rows_.before.size(), Step::list,
                 [&](std::size_t i) { return clearing_bytes(rows_.id, rows_.before[i]); });
      break;
    case Step::list: plan_piece(chunks, Step::rows, [](std::size_t) { return kv::kChunkBytes; }); break;
    case Step::rows:
      plan_piece(rows_.positions.size(), Step::end, [&](std::size_t i) {
        return clearing_bytes(rows_.id, rows_.positions[i]) + rows_.value_of(i).size();
      });
      break;
    case Step::end: break;
  }
  return step_ == Step::end;
}

// Plans the next piece of a step that has `size` elements.
void LargeDocument::plan_piece(std::size_t size, Step after,
                               const std::function<std::size_t(std::size_t)>& cost) {
  first_ = at_;
  end_ = end_of_piece(first_, size, kMaxWrittenBytes, cost);
  last_of_step_ = end_ == size;
  at_ = last_of_step_ ? 0 : end_;
  if (last_of_step_) next_ = after;
}

void LargeDocument::write(kv::Transaction& tx, const IndexKeys& keys) const {
  if (step_ == Step::begin) return begin(tx, keys);
  const auto record = read_record(tx, keys, kv::Isolation::serializable);
  if (!record || record->id != rows_.id) throw conflict("Another writer has changed the index.");
  switch (step_) {
    case Step::begin: break;
    case Step::clear:
      for (std::size_t i = first_; i < end_; ++i) clear_row(tx, keys, rows_.id, rows_.before[i]);
      if (last_of_step_) clear_list(tx, keys, rows_.id);
      break;
    case Step::list: write_list_chunks(tx, keys, rows_.id, list_, first_, end_); break;
    case Step::rows:
      for (std::size_t i = first_; i < end_; ++i) {
        const RowPosition& position = rows_.positions[i];
        kv::for_each_chunk(rows_.value_of(i), [&](std::uint32_t chunk, std::string_view piece) {
          tx.set(position.key(keys, rows_.id, chunk), piece);
        });
      }
      break;
    case Step::end:
      tx.clear(large_document_key(keys));
      add_to_counts(tx, keys, rows_.positions, 1);
      break;
  }
}

// From here on queries skip all rows of the document.
void LargeDocument::begin(kv::Transaction& tx, const IndexKeys& keys) const {
  if (read_record(tx, keys, kv::Isolation::serializable))
    throw conflict("Another writer has changed the index.");
  write_record(tx, keys, {rows_.id, 0});
  add_to_counts(tx, keys, rows_.before, -1);
  std::set<int> changed;
  for (const RowPosition& position : rows_.before) changed.insert(position.view);
  for (const RowPosition& position : rows_.positions) changed.insert(position.view);
  for (const int view : rows_.reduced_views) {
    const ReduceNodeKeys nodes(keys, view);
    if (!changed.contains(view) || read_reduce_tree_state(tx, nodes).kind == ReduceTreeState::Kind::disabled)
      continue;
    tx.clear_range(nodes.all());
  }
}

void LargeDocument::add_to_counts(kv::Transaction& tx, const IndexKeys& keys,
                                  const std::vector<RowPosition>& rows, std::int64_t sign) const {
  std::map<int, std::int64_t> counts;
  for (const RowPosition& position : rows) counts[position.view] += sign;
  for (const auto& [view, count] : counts) add_to_count(tx, keys, view, count);
}

std::unique_ptr<IndexWork> remove_interrupted_document(kv::Database& store, const IndexKeys& keys,
                                                       std::size_t views) {
  const auto tx = store.begin();
  auto record = read_record(*tx, keys);
  if (!record) return nullptr;
  auto positions = read_begun_list(*tx, keys, record->id, views);
  const std::size_t first = std::min<std::size_t>(record->removed, positions.size());
  const std::size_t end = end_of_piece(first, positions.size(), kMaxWrittenBytes, [&](std::size_t i) {
    return clearing_bytes(record->id, positions[i]);
  });
  return std::make_unique<Removal>(*std::move(record), std::move(positions), end);
}

}  // namespace divan::index::views
