// Which index answers for a design document whose definition has changed.
//
// A changed definition is another index, which is built beside the old one. Until it has everything that
// there was when the design document changed, whoever does not want to wait is answered from the old one. So
// the database keeps the last definition whose index was complete: as a setting of its own.
#pragma once

#include "divan/index/index.h"

namespace divan::index {

/// To be called in the transaction that writes a design document, before it is written.
void retain_serving_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                          const std::string& design_id, std::string_view new_body);

/// The index that answers those who do not wait, in place of `current`, which the design document, whose
/// winner is given, defines now: that one, or the one of this kind that it took the place of.
IndexPtr serving_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                       const docs::Leaf& winner, const IndexPtr& current);

}  // namespace divan::index
