// Partitioned databases (https://docs.couchdb.org/en/stable/partitioned-dbs/index.html): the ids of their
// documents begin with the name of a partition and a colon, "sensor-7:2026-11-26". The documents of a
// partition are neighbours, here as in CouchDB. Design documents and local documents belong to none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "divan/docs/catalog.h"
#include "divan/docs/document_range.h"

namespace divan::docs {

/// The partition of a document; nullopt if its id names none, as that of a design document.
std::optional<std::string_view> partition_of(std::string_view id);

/// Throws illegal_partition (400), in CouchDB's words, unless `partition` may be the name of one.
void check_partition(std::string_view partition);

/// Throws illegal_docid or illegal_partition (400), in CouchDB's words, unless a document of a partitioned
/// database may have this id, which is valid otherwise.
void check_partitioned_id(std::string_view id);
/// The same for a document of this database, which need not be partitioned.
inline void check_id_in(const Database& database, std::string_view id) {
  if (database.is_partitioned()) check_partitioned_id(id);
}

/// The ids of a partition are in [first, last).
std::string first_id(std::string_view partition);
std::string end_id(std::string_view partition);
/// The part of a range that is in a partition.
DocumentRange in_partition(DocumentRange range, std::string_view partition);

/// What a partition has.
struct PartitionInfo {
  std::int64_t doc_count = 0;
  std::int64_t doc_del_count = 0;
  std::int64_t body_bytes = 0;
};
/// Counts the documents of a partition, row by row, in as many transactions as needed: together they do not
/// show one moment. Throws not_found (404), and bad_request unless the database is partitioned.
PartitionInfo read_partition_info(kv::Database& store, Catalog& catalog, std::string_view database,
                                  std::string_view partition, const Checkpoint& checkpoint = {});

}  // namespace divan::docs
