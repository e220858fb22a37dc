#include "divan/index/purged_documents.h"

namespace divan::index {
namespace {

constexpr std::size_t kRowsPerTransaction = 1'000;

// The least sequence of the indexes; nullopt without any. Reads only the states, which are the first rows of
// their indexes: the transaction conflicts with new ones and with batches that are written.
std::optional<kv::Versionstamp> least_sequence(kv::Transaction& tx, const docs::Database& database) {
  const std::string prefix = database.keys().section(docs::Section::indexes);
  kv::KeyRange rest = kv::below(prefix);
  std::optional<kv::Versionstamp> least;
  for (;;) {
    const auto next = tx.get_range(rest, {.limit = 1});
    if (next.rows.empty()) return least;
    const auto signature =
        kv::tuple::Reader(std::string_view(next.rows.front().key).substr(prefix.size())).take_bytes();
    if (!signature) throw internal_error("An index's key in the store is damaged.");
    const IndexKeys keys(database, *signature);
    const auto sequence = read_sequence(tx, keys);
    least = least ? std::min(*least, sequence) : sequence;
    rest.begin = keys.all().end;
  }
}

}  // namespace

bool remove_purged_documents(kv::Transaction& tx, const docs::Database& database) {
  const std::string prefix = database.keys().purges(docs::PurgeRow::document);
  const kv::KeyRange all = kv::below(prefix);
  const auto last = tx.get_range(all, {.limit = 1, .reverse = true, .isolation = kv::Isolation::snapshot});
  if (last.rows.empty()) return false;
  kv::KeyRange passed{all.begin, last.rows.front().key};
  if (tx.get_range(passed, {.limit = 1, .isolation = kv::Isolation::snapshot}).rows.empty()) return false;
  if (const auto least = least_sequence(tx, database)) {
    passed.end = std::min(passed.end, database.keys().purge(docs::PurgeRow::document, *least) + '\0');
  }
  const auto page =
      tx.get_range(passed, {.limit = kRowsPerTransaction, .isolation = kv::Isolation::snapshot});
  if (page.rows.empty()) return false;
  tx.clear_range(passed.begin, page.rows.back().key + '\0');
  return page.more;
}

}  // namespace divan::index
