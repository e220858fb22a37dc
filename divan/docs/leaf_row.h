// The row of a leaf in the store. docs/keyspace.md
#pragma once

#include <string>

#include "divan/base/error.h"
#include "divan/docs/rev_tree.h"
#include "divan/kv/tuple_packer.h"

namespace divan::docs {

/// The largest number of bytes that an old revision takes in the row.
inline constexpr std::size_t kMaxOldRevisionBytes = 40;

/// Returns a value for set_versionstamped_value(): the commit fills in the sequence at its beginning.
std::string encode_leaf(const Leaf& leaf);
/// Decodes a leaf; `id_after` is the part of the key after the document's id. Throws damaged_document().
Leaf decode_leaf(kv::tuple::Reader id_after, std::string_view value);

/// The error for a malformed row of a document.
inline Error damaged_document() { return internal_error("A document's row in the store is damaged."); }

}  // namespace divan::docs
