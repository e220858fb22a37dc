#include "divan/kv/embedded/rocksdb_options.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <cstdarg>
#include <cstdio>

#include "divan/base/log.h"
#include "divan/kv/embedded/key_prefix.h"
#include "divan/kv/embedded/memtable.h"

namespace divan::kv::embedded {
namespace {

// Of the memtable's size: some tens of bits a key and a prefix, since a filter that is wrong costs a search.
constexpr double kMemtableFilterRatio = 0.02;

// RocksDB's warnings go to Divan's log; it keeps no log in the directory.
class StoreLog final : public rocksdb::Logger {
 public:
  StoreLog() : Logger(rocksdb::WARN_LEVEL) {}
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char line[1000];
    std::vsnprintf(line, sizeof line, format, arguments);
    log::warning("RocksDB: {}", line);
  }
};

}  // namespace

rocksdb::Options rocksdb_options(const Options& options) {
  rocksdb::Options rocks;
  rocks.create_if_missing = true;
  rocks.env = options.env ? options.env : rocksdb::Env::Default();
  rocks.write_buffer_size = options.write_buffer_bytes;
  rocks.max_background_jobs = 2;
  rocks.compression = rocksdb::kLZ4Compression;
  rocks.level_compaction_dynamic_level_bytes = true;
  rocks.bytes_per_sync = 1 << 20;
  rocks.max_open_files = 1000;
  rocks.info_log = std::make_shared<StoreLog>();
  // After a failed write only a restart shows what is on the disk, so RocksDB must not resume by itself.
  rocks.max_bgerror_resume_count = 0;
  // One writer: nothing to gain from concurrent insertion.
  rocks.allow_concurrent_memtable_write = false;
  rocks.enable_write_thread_adaptive_yield = false;
  rocks.memtable_factory = memtable_factory();
  rocks.prefix_extractor = filter_prefixes();
  rocks.memtable_prefix_bloom_size_ratio = kMemtableFilterRatio;
  rocks.memtable_whole_key_filtering = true;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(options.cache_bytes);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  // In parts that the cache can hold: a filter of a whole table of small rows is larger than a shard of the
  // cache, and would be read from the file for each lookup.
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;
  table.format_version = 5;
  rocks.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return rocks;
}

}  // namespace divan::kv::embedded
