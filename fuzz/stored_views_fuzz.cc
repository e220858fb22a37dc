// Rows of a view of arbitrary bytes, read forwards and backwards; nodes of arbitrary bytes, from which ranges
// are reduced; and a batch that is written over a damaged list of a document's rows. The first byte selects
// one; keys (after the view's prefix) and values follow alternately.
#include "divan/index/views/reduce_nodes.h"
#include "divan/index/views/view_batch.h"

#include "fuzz/stored_rows.h"

namespace {

namespace docs = divan::docs;
namespace views = divan::index::views;
using divan::fuzz::check;
using divan::fuzz::reads;

constexpr int kViews = 2;

struct Store {
  divan::SystemClock clock;
  divan::events::Bus bus;
  docs::Catalog catalog{bus, clock};
  docs::Database database{catalog, "db", 5, 0};
  divan::index::IndexKeys keys{database, std::string(16, 's')};
};

std::vector<std::string> read_rows(divan::fuzz::Rows& rows, const divan::index::IndexKeys& keys,
                                   bool descending) {
  std::vector<std::string> found;
  std::size_t sum = 0;
  views::visit_rows(rows, keys, 0, views::all_rows(keys, 0), descending, [&](const views::ViewRow& row) {
    // The sanitizer checks the accesses to all of it.
    for (const auto part : {row.encoded_key, row.id, row.key, row.value, row.position}) {
      for (const char c : part) sum += static_cast<unsigned char>(c);
    }
    check(divan::is_utf8(row.id));
    found.push_back(std::string(row.position) + std::string(row.key) + "\n" + std::string(row.value));
    return true;
  });
  check(sum > 0 || found.empty());
  return found;
}

// The batch's rows are readable afterwards, whatever the store contained.
void write_batch(divan::fuzz::Rows& rows, const divan::index::IndexKeys& keys) {
  views::ViewBatch batch(kViews);
  batch.add_document("d");
  batch.add_row(0, 0, "1", "\"one\"");
  batch.add_row(0, 0, "1", "2");
  batch.add_row(0, 1, "[null]", "{}");
  divan::fuzz::RowsStore store(rows);
  check(batch.prepare(store, keys, 0, {}) == 1);
  batch.write(rows, keys);
  const auto found = read_rows(rows, keys, false);
  check(found.size() == 2 && found[0].ends_with("1\n2") && found[1].ends_with("1\n\"one\""));
  views::ViewBatch nothing(kViews);
  nothing.add_document("d");
  check(nothing.prepare(store, keys, 0, {}) == 1);
  nothing.write(rows, keys);
  check(read_rows(rows, keys, false).empty());
}

// With any nodes, a visit of a range terminates, and visits only rows and nodes in the range.
void take_ranges(divan::fuzz::Rows& rows, const divan::index::IndexKeys& keys, std::string_view from) {
  const views::ReduceNodeKeys node_keys(keys, 0);
  views::read_reduce_tree_state(rows, node_keys);
  const views::FanOut fan_out{.row_bits = 1, .node_bits = 1};
  for (const bool nodes : {false, true}) {
    auto range = views::all_rows(keys, 0);
    range.begin += from;
    const auto whole = range;
    std::size_t taken = 0;
    views::visit_range(rows, keys, 0, fan_out, nodes, range,
                       {[&](const views::ViewRow& row) {
                          check(row.position >= whole.begin && row.position < whole.end);
                          return ++taken < 1000;
                        },
                        [&](const views::Partial& partial) {
                          check(nodes && !partial.value.empty());
                          return ++taken < 1000;
                        }});
    check(taken >= 1000 || range.begin >= range.end);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static Store store;
  if (size == 0) return 0;
  const auto text = divan::fuzz::text_of(data + 1, size - 1);
  divan::fuzz::Rows rows;
  if (data[0] % 3 == 1) {
    std::string key = store.keys.part(2);
    divan::kv::tuple::Packer(key).string("d").integer(0);
    rows.set(key, text);
    reads([&] { write_batch(rows, store.keys); });
    return 0;
  }
  divan::fuzz::Pieces pieces(text);
  const std::string view = views::all_rows(store.keys, 0).begin;
  if (data[0] % 3 == 2) {
    const std::string nodes = views::ReduceNodeKeys(store.keys, 0).state();
    const std::string from(pieces.take());
    while (!pieces.at_end()) {
      const std::string key = (pieces.take() == "r" ? view : nodes) + std::string(pieces.take());
      rows.set(key, pieces.take());
    }
    reads([&] { take_ranges(rows, store.keys, from); });
    return 0;
  }
  while (!pieces.at_end()) {
    const auto key = pieces.take();
    rows.set(view + std::string(key), pieces.take());
  }
  std::vector<std::string> forwards, backwards;
  const bool up = reads([&] { forwards = read_rows(rows, store.keys, false); });
  const bool down = reads([&] { backwards = read_rows(rows, store.keys, true); });
  std::reverse(backwards.begin(), backwards.end());
  if (up && down) check(forwards == backwards);
  return 0;
}
