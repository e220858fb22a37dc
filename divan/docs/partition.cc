#include "divan/docs/partition.h"

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/docs/document.h"
#include "divan/docs/leaf_row.h"

namespace divan::docs {
namespace {

// Leaves that one transaction counts.
constexpr std::size_t kLeavesAtOnce = 10'000;

Error illegal(std::string_view reason) { return {400, "illegal_partition", std::string(reason)}; }

std::string leaf_key(const Database& database, std::string_view id) {
  std::string key;
  database.keys().packer(key, Section::revs).string(id);
  return key;
}

}  // namespace

std::optional<std::string_view> partition_of(std::string_view id) {
  const auto colon = id.find(':');
  if (colon == std::string_view::npos || id.starts_with('_')) return std::nullopt;
  return id.substr(0, colon);
}

void check_partition(std::string_view partition) {
  if (partition.empty()) throw illegal("Partition must not be empty");
  if (partition.starts_with('_')) throw illegal("Partition must not start with an underscore");
  if (!is_utf8(partition)) throw illegal("Partition must be valid UTF-8");
  if (partition.find(':') != std::string_view::npos) throw illegal("Partition must not contain a colon");
}

void check_partitioned_id(std::string_view id) {
  if (is_design(id) || id.starts_with(kLocalPrefix)) return;
  const auto colon = id.find(':');
  if (colon == std::string_view::npos)
    throw Error(400, "illegal_docid", "Doc id must be of form partition:id");
  check_partition(id.substr(0, colon));
  check_document_id(id.substr(colon + 1));
}

std::string first_id(std::string_view partition) { return std::string(partition) + ':'; }
std::string end_id(std::string_view partition) { return std::string(partition) + ';'; }

DocumentRange in_partition(DocumentRange range, std::string_view partition) {
  auto& lower = range.descending ? range.end_id : range.start_id;
  auto& upper = range.descending ? range.start_id : range.end_id;
  if (!lower || *lower < first_id(partition)) lower = first_id(partition);
  if (!upper || *upper > end_id(partition)) upper = end_id(partition);
  return range;
}

PartitionInfo read_partition_info(kv::Database& store, Catalog& catalog, std::string_view name,
                                  std::string_view partition, const Checkpoint& checkpoint) {
  PartitionInfo total;
  std::optional<std::string> last_id;  // of the documents that were counted
  for (bool more = true; more;) {
    if (checkpoint) checkpoint();
    PartitionInfo counted;
    std::optional<std::string> id;
    bool is_live = false;
    store.run([&](kv::Transaction& tx) {
      counted = {};
      id.reset();
      more = false;
      const Database database = catalog.open(tx, name);
      if (!database.is_partitioned()) throw bad_request("database is not partitioned");
      const std::size_t prefix = database.keys().section(Section::revs).size();
      std::size_t leaves = 0;
      const auto end_document = [&] {
        if (id) ++(is_live ? counted.doc_count : counted.doc_del_count);
      };
      const kv::KeyRange range{
          last_id ? database.keys().leaves(*last_id).end : leaf_key(database, first_id(partition)),
          leaf_key(database, end_id(partition))};
      tx.scan(range, {.isolation = kv::Isolation::snapshot},
              [&](std::string_view key, std::string_view value) {
                kv::tuple::Reader reader(key.substr(prefix));
                auto row_id = reader.take_string();
                if (!row_id) throw damaged_document();
                if (id != row_id) {
                  end_document();
                  // The next transaction begins with this document.
                  more = leaves >= kLeavesAtOnce;
                  if (more) return false;
                  id = std::move(row_id);
                }
                const Leaf leaf = decode_leaf(reader, value);
                is_live = !leaf.deleted;  // the last leaf is the winner
                counted.body_bytes += static_cast<std::int64_t>(leaf.body_bytes);
                ++leaves;
                return true;
              });
      if (!more) end_document();
    });
    total.doc_count += counted.doc_count;
    total.doc_del_count += counted.doc_del_count;
    total.body_bytes += counted.body_bytes;
    last_id = std::move(id);
    more = more && last_id;
  }
  return total;
}

}  // namespace divan::docs
