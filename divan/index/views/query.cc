#include "divan/index/views/query.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/json.h"
#include "divan/docs/prefetch.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/index/views/large_document.h"
#include "divan/index/views/reduce_nodes.h"

namespace divan::index::views {
namespace {

// A page ends when the response has this many bytes, or after this many rows.
constexpr std::size_t kPageBytes = 256 << 10;
constexpr std::size_t kPageRows = 20'000;
// Finding the first row of a key takes about as long as reading this many rows, even if the key has none.
constexpr std::size_t kRowsOfALookup = 10;
// Reduced rows contribute only their values, but are held until the page ends.
constexpr std::size_t kPageReducedBytes = 4 << 20;
// Rows of a group that are read before its edge is looked up.
constexpr std::size_t kRowsBeforeEdge = 32;
// Groups are reduced page by page, and their results are held in memory together.
constexpr std::size_t kPageGroups = 1'000;

std::string first_elements(std::string_view array, std::uint64_t count) {
  std::string out = "[";
  json::for_each_element(array, [&](std::string_view element) {
    if (out.size() > 1) out += ',';
    out += element;
    return --count > 0;
  });
  return out + "]";
}

// The document shown with a row.
struct ShownDocument {
  std::optional<std::string> id;  // nullopt: the row's value does not name a valid id
  std::optional<docs::Revision> revision;
};

// If the row's value names a document, that one is shown ("linked documents").
ShownDocument document_of(const ViewRow& row) {
  ShownDocument shown{std::string(row.id), {}};
  if (!row.value.starts_with('{')) return shown;
  if (const auto linked = json::member(row.value, "_id")) shown.id = json::string_value(*linked);
  if (const auto rev = json::string_value(json::member(row.value, "_rev").value_or("")))
    shown.revision = docs::Revision::parse(*rev);
  return shown;
}

void append_document_or_null(kv::Transaction& tx, const docs::Database& database, const ShownDocument& shown,
                             const ViewParams& params, std::string& out) {
  docs::RevTree tree;
  if (shown.id) tree = docs::read_tree(tx, database, *shown.id, kv::Isolation::snapshot);
  const docs::Leaf* leaf = nullptr;
  docs::RevisionSelection named;
  if (shown.revision) {
    named = docs::find_revisions(tree, std::span(&*shown.revision, 1), false);
    if (!named.found.empty()) leaf = named.found.front();
  } else if (!tree.empty() && !tree.front().deleted) {
    leaf = &tree.front();
  }
  if (leaf == nullptr) {
    out += "null";
    return;
  }
  const auto form = docs::attachment_form(params.attachments, params.att_encoding_info);
  docs::append_document(out, *shown.id, *leaf, docs::read_body(tx, database, *leaf, form), tree,
                        {.conflicts = params.conflicts.value_or(false)});
}

}  // namespace

Query::Query(kv::Database& store, docs::Catalog& catalog, std::string database,
             std::shared_ptr<const ViewIndex> index, const View& view, ViewParams params,
             kv::Versionstamp known_sequence)
    : store_(store),
      catalog_(catalog),
      database_(std::move(database)),
      index_(std::move(index)),
      view_(view),
      params_(one_key_as_range(std::move(params))),
      reduces_(reduces(params_, !view.reduce.empty())),
      prefix_(params_.partition ? partition_prefix(*params_.partition) : ""),
      edge_(reduces_ ? edge_of(view.reduce) : std::nullopt),
      last_sequence_(known_sequence),
      skip_(params_.skip),
      left_(params_.limit.value_or(UINT64_MAX)) {
  check_params(params_, !view.reduce.empty(), view.collation, index_->origin().is_partitioned);
  if (reduces_) reduction_ = make_reduction(*index_, view_);
}

void Query::plan_ranges(const docs::Database& database) {
  const IndexKeys keys(database, index_->signature());
  const auto encode = [&](std::string_view key) {
    std::string encoded = prefix_;
    collation::append_key(encoded, key, view_.collation);
    return encoded;
  };
  const auto exactly = [&](std::string_view key) {
    const std::string encoded = encode(key);
    ranges_.push_back(
        {{row_key_begin(keys, view_.number, encoded), row_key_end(keys, view_.number, encoded)}});
  };
  if (params_.keys) {
    for (const auto& key : *params_.keys) exactly(key);
    // As in CouchDB (fabric_view_map:go); groups keep the order of the request (fabric_view:get_next_row).
    if (params_.descending && !reduces_) std::reverse(ranges_.begin(), ranges_.end());
    return;
  }
  RowRange range = all_rows(keys, view_.number);
  if (!prefix_.empty())
    range = {row_key_begin(keys, view_.number, prefix_), row_key_end(keys, view_.number, prefix_)};
  const auto& start = params_.start_key;
  const auto& end = params_.end_key;
  const auto& lower = params_.descending ? end : start;
  const auto& upper = params_.descending ? start : end;
  const auto& lower_id = params_.descending ? params_.end_key_doc_id : params_.start_key_doc_id;
  const auto& upper_id = params_.descending ? params_.start_key_doc_id : params_.end_key_doc_id;
  const bool lower_inclusive = !params_.descending || params_.inclusive_end;
  const bool upper_inclusive = params_.descending || params_.inclusive_end;
  if (lower) {
    const std::string encoded = encode(*lower);
    if (lower_inclusive) {
      range.begin = row_key_begin(keys, view_.number, encoded, lower_id.value_or(""));
    } else {
      range.begin = row_key_end(keys, view_.number, encoded, lower_id);
    }
  }
  if (upper) {
    const std::string encoded = encode(*upper);
    if (upper_inclusive) {
      range.end = row_key_end(keys, view_.number, encoded, upper_id);
    } else {
      range.end = row_key_begin(keys, view_.number, encoded, upper_id.value_or(""));
    }
  }
  ranges_.push_back({std::move(range), reduces_ && group_level(params_) == 0});
}

void Query::append_head(kv::Transaction& tx, const docs::Database& database, std::string& out) {
  out += '{';
  if (params_.update_seq) {
    out += "\"update_seq\":";
    json::append_string(out, docs::to_sequence(last_sequence_));
    out += ',';
  }
  if (!reduces_ && params_.sorted) {
    const std::int64_t total = count_rows(tx, IndexKeys(database, index_->signature()), view_.number);
    out += fmt::format("\"total_rows\":{},", total);
    // The number of rows before a key is unknown unless they are counted.
    const bool from_the_start = !params_.keys && !params_.start_key && !params_.partition;
    if (from_the_start) {
      out += fmt::format("\"offset\":{},", std::min(params_.skip, static_cast<std::uint64_t>(total)));
    } else {
      out += "\"offset\":null,";
    }
  }
  out += "\"rows\":[";
}

bool Query::next(std::string& out) {
  if (ended_) return false;
  {
    // Not run(): a page must not be read twice, and a transaction that only reads is not retried.
    const auto tx = store_.begin();
    prefetch_state(*tx);
    const docs::Database database = catalog_.open(*tx, database_);
    // A new database of the same name is not related to the rows so far.
    if (number_ && database.number() != *number_) throw not_found("Database does not exist.");
    // An index that was removed, and perhaps begun again, lacks rows that existed before. An index's sequence
    // does not decrease otherwise.
    const auto sequence =
        read_sequence(*tx, IndexKeys(database, index_->signature()), kv::Isolation::snapshot);
    if (sequence < last_sequence_) throw not_found("The index was removed.");
    last_sequence_ = sequence;
    hidden_ = read_hidden_document(*tx, IndexKeys(database, index_->signature()));
    if (!number_) {
      plan_ranges(database);
      append_head(*tx, database, out);
      number_ = database.number();
    }
    read_page(*tx, database, out);
    ahead_.end_page();
  }
  if (reduces_) append_groups(out);
  if (!is_done()) return true;
  if (reduces_ && group_ && left_ > 0) {
    end_group();
    append_groups(out);
  }
  out += first_row_ ? "]}\n" : "\n]}\n";
  ended_ = true;
  return false;
}

void Query::prefetch_state(kv::Transaction& tx) {
  if (!tx.is_remote()) return;
  kv::Prefetch reads;
  if (const auto database = catalog_.prefetch(reads, database_)) {
    const IndexKeys keys(*database, index_->signature());
    reads.key(keys.state());
    reads.key(large_document_key(keys));
    if (reduces_) reads.key(ReduceNodeKeys(keys, view_.number).state());
  }
  tx.prefetch(reads);
}

// The documents that the next rows show.
void Query::prefetch_documents(kv::Transaction& tx, const docs::Database& database, const IndexKeys& keys) {
  std::vector<std::string> ids;
  std::uint64_t skip = skip_;
  const auto most = std::min<std::uint64_t>(left_, ahead_.next());
  visit_rows(tx, keys, view_.number, ranges_.front().rows, params_.descending, [&](const ViewRow& row) {
    if (row.id == hidden_) return true;
    if (skip > 0) {
      --skip;
    } else {
      if (auto id = document_of(row).id) ids.push_back(*std::move(id));
    }
    return ids.size() < most;
  });
  docs::prefetch_trees(tx, database, ids);
  docs::prefetch_winners(tx, database, ids, kPageBytes);
}

bool Query::is_done() const { return ranges_.empty() || left_ == 0; }

// Returns true if no further group is to be read for this page or for the response.
bool Query::has_enough() const {
  const std::size_t groups = group_keys_.size();
  return groups >= kPageGroups || (groups >= skip_ && groups - skip_ >= left_);
}

// The page that is being read.
struct Query::Page {
  std::string& out;
  const std::size_t size_before = out.size();
  bool nodes = false;  // whether the reduce nodes are complete, or not needed
  std::size_t rows = 0;
  std::size_t reduced_bytes = 0;
  bool full = false;

  void add(const ViewRow& row, bool reduced) {
    if (reduced) reduced_bytes += row.key.size() + row.id.size() + row.value.size();
    count();
  }
  void add(const Partial& partial) {
    reduced_bytes += partial.value.size();
    count();
  }
  void count(std::size_t cost = 1) {
    rows += cost;
    full = rows >= kPageRows || out.size() - size_before >= kPageBytes || reduced_bytes >= kPageReducedBytes;
  }
};

void Query::read_page(kv::Transaction& tx, const docs::Database& database, std::string& out) {
  const IndexKeys keys(database, index_->signature());
  Page page{out};
  if (reduces_) {
    page.nodes = edge_ || read_reduce_tree_state(tx, ReduceNodeKeys(keys, view_.number)).kind ==
                              ReduceTreeState::Kind::complete;
  }
  while (!is_done() && !page.full && !has_enough()) {
    if (reduces_ && reduction_->failed()) {
      skip_rest_of_group(keys);
    } else if (ranges_.front().in_one_group) {
      read_group(tx, keys, page);
    } else {
      read_rows(tx, database, keys, page);
    }
  }
}

// Reads rows of the first range until the range or the page ends, or a group turns out to be large.
void Query::read_rows(kv::Transaction& tx, const docs::Database& database, const IndexKeys& keys,
                      Page& page) {
  const std::size_t rows_first = std::min(index_->fan_out().rows_first, edge_ ? kRowsBeforeEdge : SIZE_MAX);
  // Keys that are looked up have few rows each.
  if (params_.include_docs && !params_.keys && tx.is_remote()) prefetch_documents(tx, database, keys);
  std::string position;
  bool large = false;
  bool cut = false;
  visit_rows(tx, keys, view_.number, ranges_.front().rows, params_.descending, [&](const ViewRow& row) {
    if (row.id == hidden_) return true;
    if (!process_row(tx, database, row, page.out)) {
      cut = true;
      return false;
    }
    position = row.position;
    page.add(row, reduces_);
    large = page.nodes && group_ && group_->rows >= rows_first;
    cut = page.full || large;
    return !cut;
  });
  if (!cut) {
    page.count(kRowsOfALookup);
    ranges_.pop_front();
    // A key that was requested twice makes two groups.
    if (params_.keys && group_) end_group();
    return;
  }
  if (position.empty()) return;
  auto& rows = ranges_.front().rows;
  rows = params_.descending ? rows_before(rows, position) : rows_after(rows, position);
  if (large) split_off_group(keys);
}

// Splits the rows of the current group, with which the first range begins, off into a range of their own.
void Query::split_off_group(const IndexKeys& keys) {
  RowRange& rest = ranges_.front().rows;
  const std::string begin = row_key_begin(keys, view_.number, group_->encoded);
  const std::string end = row_key_end(keys, view_.number, group_->encoded);
  RowRange group = rest;
  if (params_.descending) {
    group.begin = rest.end = std::max(rest.begin, begin);
  } else {
    group.end = rest.begin = std::min(rest.end, end);
  }
  ranges_.push_front({std::move(group), true});
}

// The current group has failed, so that its other rows need not be read.
void Query::skip_rest_of_group(const IndexKeys& keys) {
  if (!ranges_.front().in_one_group) split_off_group(keys);
  while (!ranges_.empty() && ranges_.front().in_one_group) ranges_.pop_front();
  end_group();
}

// Reads rows of the first range, all of one group, until the range or the page ends.
void Query::read_group(kv::Transaction& tx, const IndexKeys& keys, Page& page) {
  const auto begin_group = [&] {
    if (!group_) group_ = Group{.key = "null", .encoded = {}};
  };
  if (!edge_ && !ranges_.front().split) split_at_bounds(keys);
  RowRange& range = ranges_.front().rows;
  const auto process_row = [&](const ViewRow& row) {
    if (row.id == hidden_) return true;
    begin_group();
    reduction_->add(row);
    page.add(row, true);
    return !page.full && !edge_;
  };
  if (edge_) {
    visit_rows(tx, keys, view_.number, range, *edge_ == Edge::last, process_row);
    ranges_.pop_front();
    return;
  }
  if (ranges_.front().row_by_row) {
    std::string position;
    visit_rows(tx, keys, view_.number, range, false, [&](const ViewRow& row) {
      position = row.position;
      return process_row(row);
    });
    if (page.full) {
      range = rows_after(range, position);
    } else {
      ranges_.pop_front();
    }
    return;
  }
  visit_range(tx, keys, view_.number, index_->fan_out(), page.nodes, range,
              {process_row, [&](const Partial& partial) {
                 begin_group();
                 reduction_->add(partial);
                 page.add(partial);
                 return !page.full;
               }});
  if (range.begin >= range.end) ranges_.pop_front();
}

// Reduce nodes represent rows in the order of the store. At the ends of the first range, where that may
// differ from the order of keys, rows are read one by one.
void Query::split_at_bounds(const IndexKeys& keys) {
  Range& range = ranges_.front();
  range.split = true;
  if (!has_long_bounds(keys, view_.number, range.rows)) return;
  auto [first, middle, last] = split_at_long_bounds(keys, view_.number, range.rows);
  ranges_.pop_front();
  ranges_.push_front({std::move(last), true, true, true});
  ranges_.push_front({std::move(middle), true, true, false});
  ranges_.push_front({std::move(first), true, true, true});
}

// Returns false if reading must stop: the row was the last one, or belongs to the next page.
bool Query::process_row(kv::Transaction& tx, const docs::Database& database, const ViewRow& row,
                        std::string& out) {
  if (reduces_) return process_reduced_row(row);
  if (skip_ > 0) {
    --skip_;
    return true;
  }
  if (left_ == 0) return false;
  ahead_.used();
  append_row(tx, database, row, out);
  return --left_ > 0;
}

void Query::append_row(kv::Transaction& tx, const docs::Database& database, const ViewRow& row,
                       std::string& out) {
  out += first_row_ ? "\n" : ",\n";
  first_row_ = false;
  out += "{\"id\":";
  json::append_string(out, row.id);
  out += ",\"key\":";
  out += row.key;
  out += ",\"value\":";
  out += row.value;
  if (params_.include_docs) {
    out += ",\"doc\":";
    append_document_or_null(tx, database, document_of(row), params_, out);
  }
  out += '}';
}

// Returns false if the row begins a group beyond the limit, and belongs to the next page.
bool Query::process_reduced_row(const ViewRow& row) {
  const std::uint64_t level = group_level(params_);
  std::string_view common;
  if (level == UINT64_MAX) {
    common = row.encoded_key;
  } else if (level > 0) {
    const auto key = row.encoded_key.substr(prefix_.size());
    common = row.encoded_key.substr(
        0, prefix_.size() + collation::group_prefix(key, level, view_.collation).size());
  }
  if (group_ && group_->encoded != common) end_group();
  if (!group_ && has_enough()) return false;
  if (!group_) {
    group_ = Group{.key = {}, .encoded = std::string(common)};
    if (level == 0) {
      group_->key = "null";
    } else if (level == UINT64_MAX || !row.key.starts_with('[')) {
      group_->key = row.key;
    } else {
      group_->key = first_elements(row.key, level);
    }
  }
  ++group_->rows;
  reduction_->add(row);
  return true;
}

void Query::end_group() {
  reduction_->end_group();
  group_keys_.push_back(std::move(group_->key));
  group_.reset();
}

// The row of a group in the response.
std::string Query::shown_row(std::string_view key, Reduced reduced) const {
  if (reduced.error && reduced.error->name() == kOverflowError) {
    // Without its key, as CouchDB shows it (fabric_view_row:transform).
    std::string row;
    json::Writer(row)
        .begin_object()
        .key("key")
        .null()
        .key("error")
        .string(kOverflowError)
        .key("reason")
        .string(reduced.error->reason())
        .end_object();
    return row;
  }
  return fmt::format("{{\"key\":{},\"value\":{}}}", key, reduction_->shown(std::move(reduced)));
}

void Query::append_groups(std::string& out) {
  for (auto& reduced : reduction_->take_results()) {
    const std::string key = std::move(group_keys_.front());
    group_keys_.pop_front();
    if (left_ == 0) continue;
    std::string row = shown_row(key, std::move(reduced));
    if (skip_ > 0) {
      --skip_;
      continue;
    }
    --left_;
    out += first_row_ ? "\n" : ",\n";
    first_row_ = false;
    out += row;
  }
  // An error that ends the request is thrown now.
  if (const Reduced* failed = reduction_->failed(); failed && left_ > 0) shown_row("null", *failed);
}

}  // namespace divan::index::views
