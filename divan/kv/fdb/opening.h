// The checks before a store in a cluster is used.
#pragma once

#include "divan/kv/fdb/store.h"

namespace divan::kv::fdb {

/// Throws divan::Error 500 if the file that names the cluster cannot be read.
void check_cluster_file(const std::string& path);

/// Waits until the cluster returns a read version. Throws divan::Error 500 that says what to check if that
/// takes too long; `file` is for that error.
void await_cluster(const Cluster& cluster, const std::string& file, Duration timeout);

/// The formats that a version reads. It writes the newest.
struct Formats {
  int oldest;
  int newest;
};

/// Throws divan::Error 500 unless the store has one of these formats. Marks an empty subspace with the
/// newest, and with `raises` a store of an older one, too.
void check_format(const Cluster& cluster, const Subspace& subspace, Formats formats, bool raises);

/// Clears an unfinished store and marks the subspace as unfinished. Throws divan::Error 400 if there is
/// another store.
void begin_store(const Cluster& cluster, const Subspace& subspace);
/// Marks the store as complete, with this format.
void finish_store(const Cluster& cluster, const Subspace& subspace, int format);

}  // namespace divan::kv::fdb
