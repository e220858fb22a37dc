// All rows of a store at one version, for longer than a cluster keeps versions.
//
// A cluster forgets a version after 5 seconds. Until then the rows are read at the first version. From then
// on they are read at later versions. A transaction that has read all remaining rows at one version and
// commits at the next proves that none of them was changed in between. So a dump continues as long as no
// transaction changes the remaining rows, and fails if one does.
#pragma once

#include "divan/kv/fdb/store.h"

namespace divan::kv::fdb {

/// Database::dump(). Throws transaction_too_old if remaining rows were changed.
Version dump_rows(Store& store, const RowVisitor& visit);

}  // namespace divan::kv::fdb
