// How the engine sets RocksDB up. What pays and what does not was measured with `./dev bench kv`.
#pragma once

#include <rocksdb/options.h>

#include "divan/kv/embedded/options.h"

namespace divan::kv::embedded {

rocksdb::Options rocksdb_options(const Options& options);

}  // namespace divan::kv::embedded
