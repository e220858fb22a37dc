// All rows of a store at one version, for longer than a cluster keeps versions.
//
// A cluster forgets a version after 5 seconds. Until then the rows are read at the first version. From then
// on they are read at later ones, of which each is shown to be as good: a transaction that has read all rows
// still to come at the last version, and is committed at the next, proves that none of them was changed in
// between. So a dump goes on as long as nobody changes what it has not come to yet, and fails if somebody
// does.
#pragma once

#include "divan/kv/fdb/store.h"

namespace divan::kv::fdb {

/// Database::dump(). Throws transaction_too_old if rows still to come were changed.
Version dump_rows(Store& store, const RowVisitor& visit);

}  // namespace divan::kv::fdb
