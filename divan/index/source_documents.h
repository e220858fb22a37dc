// Reads changed documents for the functions of an index.
#pragma once

#include <vector>

#include "divan/index/index.h"

namespace divan::index {

struct SourceDocuments {
  std::vector<SourceDocument> documents;  // in the order of their changes
  bool is_all = false;                    // there are no later changes
};

/// Reads the documents that changed after `since`: at most `limit`, and no further ones after `max_bytes` of
/// bodies. Reads a snapshot.
SourceDocuments read_source_documents(kv::Transaction& tx, const docs::Database& database, const Index& index,
                                      const kv::Versionstamp& since, std::size_t limit,
                                      std::size_t max_bytes);

}  // namespace divan::index
