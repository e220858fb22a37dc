#include "divan/index/views/view_batch.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/log.h"
#include "divan/docs/partition.h"
#include "divan/index/views/view_set.h"
#include "divan/kv/chunks.h"

namespace divan::index::views {
namespace {

// A document is large, and has transactions of its own, if its changes exceed this many bytes.
constexpr std::size_t kLargeBytes = 6'000'000;
// A transaction takes no further documents when it has this many bytes.
constexpr std::size_t kFullBytes = 2'000'000;
// Number of rows that are compared with the store in one read.
constexpr std::size_t kComparedAtOnce = 100;
// The reduce nodes of a view are dropped, and rebuilt at the end of the build, if more than kManyChanges
// changes are left, and more than one for each kRowsReadForAChange rows of the view: reading what is below
// their reduce nodes would take as long.
constexpr std::int64_t kManyChanges = 1000;
constexpr std::int64_t kRowsReadForAChange = 64;

constexpr int kAllViews = -1;

// Stored bytes of an encoded key: it occurs in the row's key and in the document's list; the rest of a long
// one is in the row's value.
std::size_t stored_key_bytes(std::string_view encoded_key) {
  if (!is_long_key(encoded_key)) return 2 * encoded_key.size();
  return 2 * (kMaxWholeKeyBytes + kKeyDigestBytes) + encoded_key.size() - kMaxWholeKeyBytes;
}

std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

// The size of encode_row().
std::size_t encoded_row_bytes(std::string_view encoded_key, std::string_view key, std::string_view value) {
  return varint_bytes(encoded_key.size()) + varint_bytes(key.size()) + varint_bytes(value.size()) +
         key.size() + value.size() +
         (is_long_key(encoded_key) ? encoded_key.size() - kMaxWholeKeyBytes : std::size_t{0});
}

// The position of the same row in a document's list; null if there is none.
const RowPosition* find_row(const std::vector<RowPosition>& sorted, const RowPosition& row) {
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), RowPosition{row.view, row.encoded_key, row.number, 0});
  return found != sorted.end() && found->same_row(row) ? &*found : nullptr;
}

}  // namespace

ViewBatch::ViewBatch(std::size_t count, std::shared_ptr<const ViewSet> views)
    : collations_(count), views_(std::move(views)) {
  if (!views_) return;
  for (const auto& [name, view] : views_->views())
    collations_[static_cast<std::size_t>(view.number)] = view.collation;
}

void ViewBatch::add_document(std::string id) { documents_.emplace_back().id = std::move(id); }

void ViewBatch::add_failure(std::size_t index, std::string_view reason) {
  Document& document = documents_[index];
  if (!document.left_out) {
    ++failures_;
    document.left_out = LeftOut{0, std::string(utf8_prefix(reason, LeftOut::kMaxReasonBytes))};
  }
}

void ViewBatch::add_row(std::size_t index, int view, std::string_view key, std::string_view value) {
  DIVAN_CHECK(index < documents_.size() && view >= 0 && static_cast<std::size_t>(view) < collations_.size(),
              "a row of document {} of {} in view {} of {}", index, documents_.size(), view,
              collations_.size());
  Document& document = documents_[index];
  if (document.emptied == view) {
    DIVAN_CHECK(document.left_out, "left-out rows of a view are not counted");
    ++document.left_out->rows;
    return;
  }
  auto encoded_key = encoded(document, view, key);
  if (!encoded_key) return;
  Row row{view, *std::move(encoded_key), std::string(key), std::string(value)};
  const std::size_t bytes = bytes_of(document, row);
  if (bytes > kMaxRowBytes)
    return leave_out(index, view, fmt::format("a row takes more than {} bytes", kMaxRowBytes), 1);
  if (document.bytes + bytes > kMaxEmittedBytes) return empty_view(index, view);
  document.bytes += bytes;
  bytes_ += bytes;
  ++rows_;
  document.rows.push_back(std::move(row));
}

std::optional<std::string> ViewBatch::encoded(const Document& document, int view,
                                              std::string_view key) const {
  std::string bytes;
  if (views_ && views_->origin().is_partitioned) {
    const auto partition = docs::partition_of(document.id);
    if (!partition) return std::nullopt;
    bytes = partition_prefix(*partition);
  }
  collation::append_key(bytes, key, collations_[static_cast<std::size_t>(view)]);
  return bytes;
}

// Approximate size in a transaction.
std::size_t ViewBatch::bytes_of(const Document& document, const Row& row) {
  return stored_key_bytes(row.encoded_key) + row.key.size() + row.value.size() + document.id.size() + 64;
}

// The document emits too much for a view: leaves out all of its rows in that view, and the one being added.
void ViewBatch::empty_view(std::size_t index, int view) {
  Document& document = documents_[index];
  document.emptied = view;
  const auto erased = std::erase_if(document.rows, [&](const Row& row) {
    if (row.view != view) return false;
    const std::size_t bytes = bytes_of(document, row);
    DIVAN_CHECK(document.bytes >= bytes && bytes_ >= bytes && rows_ > 0,
                "a row of {} bytes in a document of {}", bytes, document.bytes);
    document.bytes -= bytes;
    bytes_ -= bytes;
    --rows_;
    return true;
  });
  leave_out(index, view,
            fmt::format("the document's rows take more than {} bytes together", kMaxEmittedBytes),
            erased + 1);
}

void ViewBatch::leave_out(std::size_t index, int view, std::string_view why, std::size_t rows) {
  const Document& document = documents_[index];
  std::string name = std::to_string(view);
  std::string where = "an index";
  if (views_) {
    for (const auto& [view_name, one] : views_->views()) {
      if (one.number == view) name = view_name;
    }
    const js::Owner& owner = views_->origin().owner;
    where = fmt::format("`{}` in `{}`", owner.design_document, owner.database);
  }
  if (!document.left_out) {
    log::warning("Rows of document `{}` are left out of view `{}` of {}: {}.", document.id, name, where, why);
  }
  add_failure(index, fmt::format("View `{}`: {}.", name, why));
  documents_[index].left_out->rows += static_cast<std::int64_t>(rows);
}

std::vector<RowPosition> ViewBatch::positions_of(const Document& document) {
  const std::vector<Row>& rows = document.rows;
  std::vector<RowPosition> positions;
  positions.reserve(rows.size());
  for (const Row& row : rows) {
    const std::size_t bytes = encoded_row_bytes(row.encoded_key, row.key, row.value);
    positions.push_back({row.view, stored_key(row.encoded_key), 0, kv::chunk_count(bytes)});
  }
  if (rows.size() > 1) number_equal_keys(rows, positions);
  return positions;
}

// Rows of one document with equal keys are in the order of their values, as in CouchDB: it sorts what was
// emitted as Erlang terms (couch_mrview_updater:insert_results), whose order is that of raw collation. Equal
// values remain in the order of their emission.
void ViewBatch::number_equal_keys(const std::vector<Row>& rows, std::vector<RowPosition>& positions) {
  std::map<std::pair<int, std::string_view>, std::vector<std::size_t>> by_key;
  for (std::size_t i = 0; i < rows.size(); ++i) by_key[{rows[i].view, rows[i].encoded_key}].push_back(i);
  for (const auto& [key, equal] : by_key) {
    if (equal.size() == 1) continue;
    std::vector<std::pair<std::string, std::size_t>> order;
    order.reserve(equal.size());
    for (const std::size_t i : equal) {
      std::string terms = collation::encode_key(rows[i].key, Collation::raw);
      collation::append_key(terms, rows[i].value, Collation::raw);
      order.emplace_back(std::move(terms), i);
    }
    std::sort(order.begin(), order.end());
    for (std::size_t number = 0; number < order.size(); ++number)
      positions[order[number].second].number = static_cast<std::uint32_t>(number);
  }
}

std::vector<RowPosition> ViewBatch::Change::sorted() const {
  std::vector<RowPosition> sorted = positions;
  if (!in_order) std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::size_t ViewBatch::prepare(kv::Database& store, const IndexKeys& keys, std::size_t first,
                               const IndexedSoFar& so_far) {
  if (large_ && !large_ends_) return prepare_large(first);
  large_.reset();
  changes_.clear();
  nodes_.clear();
  std::size_t next = first;
  {
    const auto tx = store.begin();
    std::vector<std::optional<std::string>> lists(documents_.size() - first);
    std::vector<std::optional<std::string>> records(documents_.size() - first);  // of left-out rows
    if (!so_far.all_new) {
      std::vector<std::string> list_keys;
      for (std::size_t i = first; i < documents_.size(); ++i)
        list_keys.push_back(list_key(keys, documents_[i].id));
      list_keys.push_back(left_out_documents_key(keys));
      lists = tx->get_many(list_keys, kv::Isolation::snapshot);
      if (kv::decode_counter(lists.back()) != 0) {
        std::vector<std::string> record_keys;
        for (std::size_t i = first; i < documents_.size(); ++i)
          record_keys.push_back(left_out_key(keys, documents_[i].id));
        records = tx->get_many(record_keys, kv::Isolation::snapshot);
      }
    }
    std::size_t bytes = 0;
    for (; next < documents_.size(); ++next) {
      const Document& document = documents_[next];
      const auto& list = lists[next - first];
      bytes += document.bytes + (list ? list->size() : 0);
      if (next > first && bytes > kFullBytes) break;
      Change& change = changes_.emplace_back(Change{
          &document, read_list(*tx, keys, document.id, list, collations_.size()), positions_of(document)});
      if (const auto& record = records[next - first]) change.left_out_before = decode_left_out(*record);
      change.in_order = std::is_sorted(change.positions.begin(), change.positions.end());
      if (!is_large(change)) continue;
      if (next == first) return prepare_large(first);
      changes_.pop_back();
      break;
    }
    find_unchanged(*tx, keys);
  }
  if (views_) {
    for (const auto& [name, view] : views_->views()) {
      if (view.has_reduce_nodes()) prepare_reduce_nodes(store, keys, view, so_far.behind);
    }
  }
  return next;
}

bool ViewBatch::is_large(const Change& change) const {
  return change.document->bytes + clearing_bytes(change.document->id, change.before) > kLargeBytes;
}

// Prepares the next transaction of the document with this index, which is the only change.
std::size_t ViewBatch::prepare_large(std::size_t number) {
  if (!large_) {
    Change& change = changes_.front();
    std::vector<int> reduced_views;
    if (views_) {
      for (const auto& [name, view] : views_->views()) {
        if (view.has_reduce_nodes()) reduced_views.push_back(view.number);
      }
    }
    auto list = change.sorted();
    large_.emplace(LargeDocument::Rows{.id = change.document->id,
                                       .before = std::move(change.before),
                                       .list = std::move(list),
                                       .positions = std::move(change.positions),
                                       .value_of =
                                           [&rows = change.document->rows](std::size_t i) {
                                             return encode_row(rows[i].encoded_key, rows[i].key,
                                                               rows[i].value);
                                           },
                                       .reduced_views = std::move(reduced_views)});
  }
  large_ends_ = large_->prepare();
  return large_ends_ ? number + 1 : number;
}

// Compares the rows whose positions do not change with the stored rows.
void ViewBatch::find_unchanged(kv::Transaction& tx, const IndexKeys& keys) {
  std::vector<std::string> stored_keys;
  std::vector<std::string> values;
  std::vector<std::pair<Change*, std::size_t>> rows;  // of these chunks
  const auto read = [&] { return tx.get_many(stored_keys, kv::Isolation::snapshot); };
  const auto read_however_long_it_takes = [&] {
    try {
      return read();
    } catch (const kv::Error& error) {
      if (error.code() != kv::ErrorCode::transaction_too_old) throw;
    }
    // Only the worker of the index's job writes these rows, so reading them at several versions is safe.
    tx.reset();
    return read();
  };
  const auto compare = [&] {
    const auto stored = read_however_long_it_takes();
    DIVAN_CHECK(stored.size() == rows.size() && values.size() == rows.size(), "{} of {} rows were read",
                stored.size(), rows.size());
    for (std::size_t i = 0; i < stored.size(); ++i) {
      if (stored[i] != values[i]) rows[i].first->unchanged[rows[i].second] = false;
    }
    stored_keys.clear();
    values.clear();
    rows.clear();
  };
  for (Change& change : changes_) {
    change.unchanged.resize(change.positions.size());
    if (change.before.empty()) continue;
    const Document& document = *change.document;
    for (std::size_t i = 0; i < change.positions.size(); ++i) {
      const RowPosition& position = change.positions[i];
      const RowPosition* before = find_row(change.before, position);
      if (before == nullptr || before->chunks != position.chunks) continue;
      change.unchanged[i] = true;
      const Row& row = document.rows[i];
      kv::for_each_chunk(encode_row(row.encoded_key, row.key, row.value),
                         [&](std::uint32_t chunk, std::string_view piece) {
                           stored_keys.push_back(position.key(keys, document.id, chunk));
                           values.emplace_back(piece);
                           rows.emplace_back(&change, i);
                         });
      if (stored_keys.size() >= kComparedAtOnce) compare();
    }
  }
  if (!stored_keys.empty()) compare();
}

void ViewBatch::prepare_reduce_nodes(kv::Database& store, const IndexKeys& keys, const View& view,
                                     std::int64_t behind) {
  using Kind = ReduceTreeState::Kind;
  ReduceTreeState state;
  std::int64_t rows_before = 0;
  bool is_new = false;
  {
    const auto tx = store.begin();
    state = read_reduce_tree_state(*tx, ReduceNodeKeys(keys, view.number));
    rows_before = count_rows(*tx, keys, view.number);
    is_new = read_sequence(*tx, keys, kv::Isolation::snapshot) == kv::Versionstamp();
  }
  if (state.kind == Kind::disabled || (state.kind == Kind::none && !is_new)) return;
  const auto rows = row_changes(view.number);
  const std::int64_t changes = std::max(behind, static_cast<std::int64_t>(rows.size()));
  const bool many = changes > kManyChanges && changes > rows_before / kRowsReadForAChange;
  if (many || state.kind == Kind::building) {
    if (!is_new) nodes_[view.number] = {.clear = true, .nodes = {}, .state = ReduceTreeState{}};
    return;
  }
  if (rows.empty() && !is_new) return;
  ReduceNodeWrites writes =
      ReduceTreeUpdater(store, keys, *views_, view).update(rows, [&](kv::Transaction& tx) {
        write_rows(tx, keys, view.number);
      });
  if (is_new && !writes.state) writes.state = ReduceTreeState{Kind::complete, 0, {}};
  nodes_[view.number] = std::move(writes);
}

std::vector<EntryChange> ViewBatch::row_changes(int view) const {
  using Kind = EntryChange::Kind;
  std::vector<EntryChange> rows;
  for (const Change& change : changes_) {
    const std::string& id = change.document->id;
    const auto sorted = change.before.empty() ? std::vector<RowPosition>() : change.sorted();
    for (const RowPosition& position : change.before) {
      if (position.view == view && find_row(sorted, position) == nullptr)
        rows.push_back({position.position(id), Kind::removed});
    }
    for (std::size_t i = 0; i < change.positions.size(); ++i) {
      const RowPosition& position = change.positions[i];
      if (position.view != view || change.unchanged[i]) continue;
      const bool was_there = find_row(change.before, position) != nullptr;
      rows.push_back({position.position(id), was_there ? Kind::changed : Kind::inserted});
    }
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.position < b.position; });
  return rows;
}

void ViewBatch::write_rows(kv::Transaction& tx, const IndexKeys& keys, int view) const {
  for (const Change& change : changes_) {
    const Document& document = *change.document;
    for (std::size_t i = 0; i < change.positions.size(); ++i) {
      const RowPosition& position = change.positions[i];
      if (change.unchanged[i] || (view != kAllViews && position.view != view)) continue;
      const Row& row = document.rows[i];
      kv::for_each_chunk(encode_row(row.encoded_key, row.key, row.value),
                         [&](std::uint32_t chunk, std::string_view piece) {
                           tx.set(position.key(keys, document.id, chunk), piece);
                         });
    }
    if (change.before.empty()) continue;
    const auto sorted = change.sorted();
    for (const RowPosition& old : change.before) {
      if (view != kAllViews && old.view != view) continue;
      const RowPosition* same = find_row(sorted, old);
      for (std::uint32_t chunk = same ? same->chunks : 0; chunk < old.chunks; ++chunk)
        tx.clear(old.key(keys, document.id, chunk));
    }
  }
}

void ViewBatch::write(kv::Transaction& tx, const IndexKeys& keys) const {
  if (large_) {
    large_->write(tx, keys);
    const Change& change = changes_.front();
    if (large_ends_)
      write_left_out(tx, keys, change.document->id, change.left_out_before, change.document->left_out);
    return;
  }
  write_rows(tx, keys, kAllViews);
  std::vector<std::int64_t> added(collations_.size());
  for (const Change& change : changes_) {
    const auto write = [&](const std::vector<RowPosition>& sorted) {
      if (change.before != sorted) write_list(tx, keys, change.document->id, change.before, sorted);
    };
    if (change.in_order) {
      write(change.positions);
    } else {
      write(change.sorted());
    }
    write_left_out(tx, keys, change.document->id, change.left_out_before, change.document->left_out);
    DIVAN_CHECK(change.positions.size() == change.unchanged.size() &&
                    change.positions.size() == change.document->rows.size(),
                "{} positions of {} rows", change.positions.size(), change.document->rows.size());
    for (const RowPosition& position : change.positions) ++added[static_cast<std::size_t>(position.view)];
    for (const RowPosition& position : change.before) --added[static_cast<std::size_t>(position.view)];
  }
  for (std::size_t view = 0; view < added.size(); ++view)
    add_to_count(tx, keys, static_cast<int>(view), added[view]);
  for (const auto& [view, writes] : nodes_) writes.write(tx, ReduceNodeKeys(keys, view));
}

}  // namespace divan::index::views
