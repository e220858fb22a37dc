// The index that serves queries of a design document whose definition has changed.
//
// A changed definition is another index, which is built beside the old one. Until that one is complete up to
// the change of the design document, queries that do not wait are served from the old index. The database
// therefore stores the last definition whose index was complete, as a setting.
#pragma once

#include "divan/index/index.h"

namespace divan::index {

/// Stores the old definition if its index is complete. Must be called in the transaction that writes a design
/// document, before it is written.
void retain_serving_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                          const std::string& design_id, std::string_view new_body);

/// The index that serves queries that do not wait: `current`, which the design document with this winner
/// defines, or the index of the same kind that it replaces.
IndexPtr serving_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                       const docs::Leaf& winner, const IndexPtr& current);

}  // namespace divan::index
