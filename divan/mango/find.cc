#include "divan/mango/find.h"

#include <algorithm>

#include "divan/base/check.h"
#include "divan/base/json.h"
#include "divan/collation/collation.h"
#include "divan/docs/bodies.h"
#include "divan/docs/partition.h"
#include "divan/docs/prefetch.h"
#include "divan/index/views/large_document.h"
#include "divan/mango/explain.h"
#include "divan/mango/hits.h"

namespace divan::mango {
namespace {

using index::IndexKeys;
using index::views::row_key_begin;
using index::views::row_key_end;
using index::views::ViewRow;

// A page ends when the response has this many bytes, after this many rows or documents, or after this time:
// a transaction must not become too old.
constexpr std::size_t kPageBytes = 256 << 10;
// Of a full-text index, which is searched again for each page.
constexpr std::size_t kTextPageBytes = 1 << 20;
constexpr std::size_t kPageRows = 20'000;
constexpr std::chrono::milliseconds kPageTime{500};
// The numbers of documents that are prefetched together from a remote store.
constexpr std::uint64_t kMinPrefetched = 32;
constexpr std::uint64_t kMaxPrefetched = 1'000;
// The number of documents whose bodies are read together from an embedded store.
constexpr std::uint64_t kMaxTogether = 256;
// Their bytes, about.
constexpr std::uint64_t kMaxTogetherBytes = 1 << 20;

std::optional<std::string> id_of(const std::optional<Range::Bound>& bound) {
  return bound ? json::string_value(bound->json) : std::nullopt;
}

}  // namespace

// The page that is being read.
struct Find::Page {
  std::string& out;
  const std::size_t size_before = out.size();
  const Clock& clock;
  const std::size_t most_bytes = kPageBytes;
  MonotonicTime end = clock.now() + kPageTime;
  std::size_t rows = 0;
  std::string document{};  // the one that is tested; kept for its memory

  bool is_full() const {
    return rows >= kPageRows || out.size() - size_before >= most_bytes || clock.now() >= end;
  }
};

void check_bookmark(const FindRequest& request, const Plan& plan) {
  if (request.bookmark.empty()) return;
  if (plan.index().text) {
    decode_text_bookmark(request.bookmark);
  } else {
    Bookmark::decode(request.bookmark);
  }
}

Find::Find(FindSource source, FindRequest request, Plan plan)
    : source_(std::move(source)),
      request_(std::move(request)),
      plan_(std::move(plan)),
      projection_(request_.fields ? std::optional<Projection>(*request_.fields) : std::nullopt),
      started_(source_.clock.now()),
      last_sequence_(source_.known_sequence),
      skip_(request_.skip),
      left_(plan_.has_no_results ? 0 : request_.limit) {
  DIVAN_CHECK(plan_.chosen, "a query has an index");
  if (plan_.index().text) {
    if (!request_.bookmark.empty()) text_place_ = decode_text_bookmark(request_.bookmark);
    return;
  }
  if (!request_.bookmark.empty()) place_ = Bookmark::decode(request_.bookmark);
  if (plan_.index().is_all_documents()) documents_ = document_range();
}

// The documents that may match, after the place of the bookmark.
docs::DocumentRange Find::document_range() const {
  docs::DocumentRange range{.descending = request_.sort.descending};
  std::optional<std::string> first, last;
  if (!plan_.ranges.empty()) {
    // Other values are before all strings.
    first = id_of(plan_.ranges[0].low);
    last = id_of(plan_.ranges[0].high);
    if (plan_.ranges[0].high && !last) last = "";
  }
  range.start_id = range.descending ? last : first;
  range.end_id = range.descending ? first : last;
  if (place_) {
    const bool is_further =
        !range.start_id || (range.descending ? place_->id < *range.start_id : place_->id > *range.start_id);
    if (is_further) range.start_id = place_->id;
  }
  return request_.partition.empty() ? range : docs::in_partition(range, request_.partition);
}

bool Find::next(std::string& out) {
  Page page{
      .out = out, .clock = source_.clock, .most_bytes = plan_.index().text ? kTextPageBytes : kPageBytes};
  {
    // Not run(): a page must not be read twice, and a transaction that only reads is not retried.
    const auto tx = source_.store.begin();
    if (tx->is_remote()) {
      kv::Prefetch reads;
      source_.catalog.prefetch(reads, source_.database);
      tx->prefetch(reads);
    }
    const docs::Database database = source_.catalog.open(*tx, source_.database);
    // A new database of the same name is not related to the results so far.
    if (number_ && database.number() != *number_) throw not_found("Database does not exist.");
    if (!plan_.index().is_all_documents()) check_sequence(*tx, database);
    if (!number_) {
      number_ = database.number();
      last_id_ = place_ ? place_->id : "";
      if (plan_.index().views) plan_rows(database);
    }
    if (left_ > 0) read_page(*tx, database, page);
  }
  if (left_ > 0) return true;
  if (results_ == 0) out += "{\"docs\":[";
  append_tail(out);
  return false;
}

// An index that was removed, and perhaps begun again, lacks rows that existed before. An index's sequence
// does not decrease otherwise.
void Find::check_sequence(kv::Transaction& tx, const docs::Database& database) {
  const auto sequence = index::read_sequence(tx, IndexKeys(database, plan_.index().built().signature()),
                                             kv::Isolation::snapshot);
  if (sequence < last_sequence_) throw not_found("The index was removed.");
  last_sequence_ = sequence;
}

// Reads until the page is full, or sets left_ to 0 at the end.
void Find::read_page(kv::Transaction& tx, const docs::Database& database, Page& page) {
  if (plan_.index().is_all_documents()) {
    read_documents(tx, database, page);
  } else if (plan_.index().text) {
    read_hits(tx, database, page);
  } else {
    read_rows(tx, database, page);
  }
}

// Reads documents until the page is full.
void Find::read_documents(kv::Transaction& tx, const docs::Database& database, Page& page) {
  while (left_ > 0 && !page.is_full()) {
    DocumentBatch batch = next_batch(tx, database);
    if (batch.ids.empty()) {
      left_ = 0;
      return;
    }
    docs::prefetch_bodies(tx, database, batch.winners);
    const auto bodies = docs::read_bodies(tx, database, batch.winners);
    for (std::size_t i = 0; i < bodies.size() && left_ > 0 && !page.is_full(); ++i) {
      const std::string& id = batch.ids[i];
      if (add_document(tx, database, id, batch.winners[i], bodies[i], page))
        place_ = Bookmark{json::quoted(id), id};
      last_id_ = id;
    }
    documents_.start_id = last_id_;
    if (batch.is_last && last_id_ == batch.ids.back()) left_ = 0;
  }
}

// The next documents, whose bodies are read together: at first a few, since these may be enough.
Find::DocumentBatch Find::next_batch(kv::Transaction& tx, const docs::Database& database) {
  const auto wanted = std::max(batch_size_, left_ + skip_);
  const std::uint64_t most =
      tx.is_remote() ? std::clamp(wanted, kMinPrefetched, kMaxPrefetched) : std::min(wanted, kMaxTogether);
  batch_size_ = 2 * most;
  DocumentBatch batch{.is_last = true};
  std::uint64_t bytes = 0;
  docs::visit_documents(tx, database, documents_, [&](const std::string& id, const docs::Leaf& winner) {
    if (docs::is_design(id) || id == last_id_) return true;
    batch.ids.push_back(id);
    batch.winners.push_back(winner);
    batch.winners.back().path.ids.resize(1);
    bytes += winner.body_bytes;
    batch.is_last = batch.ids.size() < most && bytes < kMaxTogetherBytes;
    return batch.is_last;
  });
  return batch;
}

// The rows that may match, after the place of the bookmark.
void Find::plan_rows(const docs::Database& database) {
  const IndexKeys keys(database, plan_.index().views->signature());
  const int view = plan_.index().view().number;
  const auto range = key_range(plan_, "null");
  const auto encode = [&](std::string_view json) {
    std::string encoded =
        request_.partition.empty() ? "" : index::views::partition_prefix(request_.partition);
    collation::append_key(encoded, json);
    return encoded;
  };
  std::string end = encode(range.end);
  // Without the last element, which stands for all values, and the end of the array.
  end.resize(end.size() - 2);
  rows_ = {row_key_begin(keys, view, encode(range.start)), row_key_end(keys, view, end)};
  if (!place_) return;
  const std::string key = encode(place_->key);
  if (request_.sort.descending) {
    rows_.end = std::min(rows_.end, row_key_begin(keys, view, key, place_->id));
  } else {
    rows_.begin = std::max(rows_.begin, row_key_end(keys, view, key, place_->id));
  }
}

void Find::read_rows(kv::Transaction& tx, const docs::Database& database, Page& page) {
  const IndexKeys keys(database, plan_.index().views->signature());
  const int view = plan_.index().view().number;
  const bool descending = request_.sort.descending;
  const auto hidden = index::views::read_hidden_document(tx, keys);
  if (tx.is_remote() && !plan_.covering) {
    std::vector<std::string> ids;
    const auto most = std::clamp(2 * left_ + skip_, kMinPrefetched, kMaxPrefetched);
    visit_rows(tx, keys, view, rows_, descending, [&](const ViewRow& row) {
      ids.emplace_back(row.id);
      return ids.size() < most;
    });
    docs::prefetch_trees(tx, database, ids);
    docs::prefetch_winners(tx, database, ids, kPageBytes);
  }
  std::string position;
  bool is_cut = false;
  visit_rows(tx, keys, view, rows_, descending, [&](const ViewRow& row) {
    position = row.position;
    if (row.id != hidden) add_row(tx, database, row, page);
    is_cut = left_ == 0 || page.is_full();
    return !is_cut;
  });
  if (!is_cut) {
    left_ = 0;
  } else {
    rows_ = descending ? rows_before(rows_, position) : rows_after(rows_, position);
  }
}

void Find::add_row(kv::Transaction& tx, const docs::Database& database, const ViewRow& row, Page& page) {
  if (plan_.covering) return add_covered(row, page);
  if (add_found(tx, database, row.id, page)) place_ = Bookmark{std::string(row.key), std::string(row.id)};
}

bool Find::add_found(kv::Transaction& tx, const docs::Database& database, std::string_view id, Page& page,
                     const selector::TextTest& has_text) {
  const auto tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
  // The index may be older than the document.
  if (tree.empty() || tree.front().deleted) {
    ++page.rows;
    ++keys_examined_;
    return false;
  }
  return add_document(tx, database, id, tree.front(), docs::read_body(tx, database, tree.front()), page,
                      has_text);
}

void Find::read_hits(kv::Transaction& tx, const docs::Database& database, Page& page) {
  const auto& condition = request_.selector.condition();
  Hits hits(tx, database, plan_, condition, text_place_);
  // From now on, so that a page has more than one document even if the search was slow.
  page.end = source_.clock.now() + kPageTime;
  for (auto count = std::min(left_ + skip_, kMaxTogether);; count = std::min(2 * count, kMaxTogether)) {
    const auto batch = hits.next(count);
    if (batch.empty()) {
      left_ = 0;
      return;
    }
    if (tx.is_remote()) {
      std::vector<std::string> ids;
      for (const auto& hit : batch) ids.push_back(hit.id);
      docs::prefetch_trees(tx, database, ids);
      docs::prefetch_winners(tx, database, ids, kTextPageBytes);
    }
    for (const auto& hit : batch) {
      add_found(tx, database, hit.id, page,
                [&](const selector::Condition& text) { return hits.has_text(hit, text); });
      if (left_ > 0 && !page.is_full()) continue;
      text_place_ = hits.bookmark(hit);
      return;
    }
    text_place_ = hits.bookmark(batch.back());
  }
}

// The fields that are needed are in the row.
void Find::add_covered(const ViewRow& row, Page& page) {
  ++page.rows;
  ++keys_examined_;
  const std::string id = json::quoted(row.id);
  std::vector<std::string_view> values;
  json::for_each_element(row.key, [&](std::string_view value) {
    values.push_back(value);
    return true;
  });
  const auto& columns = plan_.index().columns;
  static const selector::Path kId{"_id"};
  FieldTree fields;
  fields.set(kId, id);
  for (std::size_t i = 0; i < std::min(values.size(), columns.size()); ++i) fields.set(columns[i], values[i]);
  page.document.clear();
  fields.append_to(page.document);
  if (!request_.selector.matches(page.document)) return;
  add_match(page.document, page);
  place_ = Bookmark{std::string(row.key), std::string(row.id)};
}

bool Find::add_document(kv::Transaction& tx, const docs::Database& database, std::string_view id,
                        const docs::Leaf& winner, std::string_view body, Page& page,
                        const selector::TextTest& has_text) {
  ++page.rows;
  ++keys_examined_;
  ++documents_examined_;
  docs::RevTree tree;
  if (request_.conflicts) tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
  page.document.clear();
  docs::append_document(page.document, id, winner, body, tree, {.conflicts = request_.conflicts});
  if (!request_.selector.matches(page.document, has_text)) return false;
  add_match(page.document, page);
  return true;
}

void Find::add_match(std::string_view document, Page& page) {
  if (skip_ > 0) {
    --skip_;
    return;
  }
  page.out += results_++ == 0 ? "{\"docs\":[\n" : ",\n";
  if (projection_) {
    projection_->append(document, page.out);
  } else {
    page.out += document;
  }
  --left_;
}

void Find::write_stats(json::Writer& writer) const {
  const auto number = [&](std::string_view name, std::uint64_t value) {
    writer.key(name).number(static_cast<std::int64_t>(value));
  };
  const std::chrono::duration<double, std::milli> time = source_.clock.now() - started_;
  std::string milliseconds;
  json::append_double(milliseconds, time.count());
  writer.key("execution_stats").begin_object();
  number("total_keys_examined", keys_examined_);
  // As in CouchDB, where documents are then read from several copies.
  number("total_docs_examined", request_.r > 1 ? 0 : documents_examined_);
  number("total_quorum_docs_examined", request_.r > 1 ? documents_examined_ : 0);
  number("results_returned", results_);
  writer.key("execution_time_ms").raw(milliseconds).end_object();
}

void Find::append_tail(std::string& out) const {
  out += "\n],\n";
  std::string tail;
  json::Writer writer(tail);
  const std::string bookmark = place_        ? place_->encode()
                               : text_place_ ? text_place_->encode()
                                             : std::string(kNoBookmark);
  writer.begin_object().key("bookmark").string(bookmark);
  if (request_.execution_stats) write_stats(writer);
  const std::string warning =
      warning_of(request_, plan_, documents_examined_, results_, source_.scan_warning_threshold);
  if (!warning.empty()) writer.key("warning").string(warning);
  writer.end_object();
  out += tail.substr(1);
  out += '\n';
}

}  // namespace divan::mango
