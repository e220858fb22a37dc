// The memtables of the embedded store: where RocksDB keeps what is in the log and in no table yet.
#pragma once

#include <rocksdb/memtablerep.h>

#include <memory>

namespace divan::kv::embedded {

/// Makes memtables whose entries are in an EntryList. For stores with RocksDB's BytewiseComparator, and
/// without concurrent insertion.
std::shared_ptr<rocksdb::MemTableRepFactory> memtable_factory();

}  // namespace divan::kv::embedded
