#include "divan/index/views/check.h"

#include <fmt/core.h>

#include <climits>
#include <utility>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/catalog.h"
#include "divan/docs/keys.h"
#include "divan/index/views/reduce_nodes.h"
#include "divan/index/views/row_lists.h"

namespace divan::index::views {
namespace {

using kv::tuple::Reader;

std::string node_name(int level, std::string_view position) {
  return std::to_string(level) + ":" + std::string(position);
}

template <class Value>
Value required(std::optional<Value> value) {
  if (!value) throw internal_error("this is not a key of an index");
  return *std::move(value);
}

}  // namespace

bool Check::row(std::string_view key, std::string_view value) {
  const auto number = docs::database_number(key);
  if (!number) return false;
  try {
    Reader reader(key);
    reader.take_string();
    reader.take_int();
    if (reader.take_int() != static_cast<std::int64_t>(docs::Section::indexes)) return false;
    const std::string signature = required(reader.take_bytes());
    if (signature.size() != kSignatureBytes)
      throw internal_error("the signature of an index must have 16 bytes");
    Tally& tally = tallies_[{*number, signature}];
    if (&tally != tally_) {
      end_row();
      end_list();
    }
    tally_ = &tally;
    index_row(reader.rest(), value);
  } catch (const Error& error) { findings_.add(error.reason(), key); }
  return true;
}

void Check::index_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto part = required(reader.take_int());
  rest = reader.rest();
  if (part != 1) end_row();
  if (part != 2) end_list();
  if (part == 0 && !rest.empty()) {
    record_row(rest, value);
  } else if (part == 0) {
    if (!kv::has_shape(value, "v")) throw internal_error("the state of an index is damaged");
    tally_->has_state = true;
    if (kv::is_beyond(*Reader(value).take_versionstamp(), version_))
      throw internal_error(
          fmt::format("the index's sequence is greater than the store's version {}", version_));
  } else if (part == 1) {
    view_row(rest, value);
  } else if (part == 2) {
    list_row(rest, value);
  } else if (part == 3) {
    if (!kv::has_shape(rest, "i") || value.size() != 8) throw internal_error("a row counter is damaged");
    tally_->counters[*Reader(rest).take_int()] = kv::decode_counter(value);
  } else if (part == 4) {
    reduce_node_row(rest, value);
  } else if (part == 5) {
    if (!rest.empty() || !kv::has_shape(value, "si"))
      throw internal_error("the record of a large document is damaged");
    tally_->being_written = true;
  } else {
    throw internal_error("unknown part of an index");
  }
}

void Check::view_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto view = required(reader.take_int());
  const auto [position_in_view, chunk] = split_row_key(reader.rest());
  const std::string_view position = split_row_key(rest).first;
  if (row_ && row_->id() != position) end_row();
  if (!row_) row_.emplace(std::string(position));
  tally_->rows.add(rest);
  if (chunk == 0) {
    ++tally_->counted[view];
    for (int level = FanOut().level(position_in_view); level > 0; --level)
      tally_->boundaries[view].add(node_name(level, position_in_view));
  }
  if (!row_->add(chunk, value)) throw internal_error("the previous chunk is missing or incomplete");
}

void Check::reduce_node_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  const auto view = required(reader.take_int());
  if (reader.rest().empty()) {
    if (decode_reduce_tree_state(value).kind == ReduceTreeState::Kind::complete)
      tally_->with_nodes.push_back(view);
    return;
  }
  const auto level = required(reader.take_int());
  if (level < 1 || level > 64) throw internal_error("the level of a reduce node must be from 1 to 64");
  tally_->nodes[view].add(node_name(static_cast<int>(level), reader.rest()));
  const auto partial = decode_reduce_node(value);
  if (partial && !json::is_compact(partial->value))
    throw internal_error("the value of a reduce node is invalid JSON");
}

// The records under the index's state.
void Check::record_row(std::string_view rest, std::string_view value) {
  using Record = IndexKeys::Record;
  const std::int64_t number = required(Reader(rest).take_int());
  if (number < INT_MIN || number > INT_MAX) throw internal_error("unknown record of an index");
  const auto record = Record{static_cast<int>(number)};
  const auto counter = [&] {
    if (!kv::has_shape(rest, "i") || value.size() != 8)
      throw internal_error("a counter of left-out rows is damaged");
    return kv::decode_counter(value);
  };
  switch (record) {
    case Record::failures:
      if (kv::has_shape(rest, "i") && kv::has_shape(value, "iiis")) return;
      throw internal_error("the record of an index's failed builds is damaged");
    case Record::left_out_documents: tally_->left_out_counted.documents = counter(); return;
    case Record::left_out_rows: tally_->left_out_counted.rows = counter(); return;
    case Record::left_out:
      if (!kv::has_shape(rest, "is")) throw internal_error("the key of a record of left-out rows is damaged");
      ++tally_->left_out.documents;
      tally_->left_out.rows += decode_left_out(value).rows;
      return;
  }
  throw internal_error("unknown record of an index");
}

void Check::end_row() {
  if (!row_) return;
  const auto row = *std::exchange(row_, std::nullopt);
  try {
    if (const auto text = row.text()) check_row(row.id(), *text);
  } catch (const Error& error) { tally_->values.add(error.reason(), row.id()); }
}

void Check::list_row(std::string_view rest, std::string_view value) {
  Reader reader(rest);
  auto id = required(reader.take_string());
  const auto chunk = required(reader.take_int());
  if (chunk == 0) end_list();
  if (chunk != 0 && (id != document_ || list_.empty())) throw internal_error("a previous chunk is missing");
  document_ = std::move(id);
  list_ += value;
}

void Check::end_list() {
  if (list_.empty()) return;
  const std::string list = std::exchange(list_, {});
  try {
    visit_listed_rows(list, document_, [this](std::string_view key) { tally_->listed.add(key); });
  } catch (const Error& error) {
    tally_->values.add(fmt::format("document {}: {}", document_, error.reason()));
  }
}

void Check::finish(kv::RowSource&) {
  end_row();
  end_list();
  for (auto& [index, tally] : tallies_) {
    const auto name = name_of_(index.first);
    if (!name) continue;
    const auto found = [&, &signature = index.second](std::string_view what) {
      findings_.add(fmt::format("Database {}, index {}: {}", *name, to_hex(signature), what));
    };
    for (const auto& text : tally.values.kept()) found(text);
    if (tally.values.count() > tally.values.kept().size())
      found(fmt::format("{} of its rows are damaged.", tally.values.count()));
    const bool has_rows = tally.rows.count() > 0 || tally.listed.count() > 0 || !tally.counters.empty();
    if (!tally.has_state && has_rows) found("it has rows, but no sequence.");
    // The rows of a document that is being written are incomplete, and the next build removes them.
    if (tally.being_written) continue;
    if (tally.rows != tally.listed)
      found(fmt::format("its {} rows and the {} rows in its documents' lists do not match.",
                        tally.rows.count(), tally.listed.count()));
    for (const auto view : tally.with_nodes) {
      if (tally.nodes[view] != tally.boundaries[view])
        found(fmt::format("view {}: its {} reduce nodes and the {} boundaries of its rows do not match.",
                          view, tally.nodes[view].count(), tally.boundaries[view].count()));
    }
    const auto& [documents, rows, _] = tally.left_out;
    if (documents != tally.left_out_counted.documents || rows != tally.left_out_counted.rows)
      found(fmt::format("it has records of {} left-out rows of {} documents, but counts {} of {}.", rows,
                        documents, tally.left_out_counted.rows, tally.left_out_counted.documents));
    for (const auto& [view, counted] : tally.counted) tally.counters.try_emplace(view, 0);
    for (const auto& [view, counter] : tally.counters) {
      if (counter != tally.counted[view])
        found(fmt::format("the row counter of view {} is {}, but the view has {} rows.", view, counter,
                          tally.counted[view]));
    }
  }
}

}  // namespace divan::index::views
