// Reads bodies of many revisions at once, and removes bodies.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "divan/docs/contents.h"
#include "divan/docs/rev_tree.h"

namespace divan::docs {

/// The bodies of revisions, in their order, each as read_body() returns it. In an embedded store those that
/// are near one another, such as the bodies of documents that were written one after the other, are read as
/// ranges, which takes a fraction of the time. Reads a snapshot. Throws an internal error if one is missing.
std::vector<std::string> read_bodies(kv::Transaction& tx, const Database& database,
                                     std::span<const Leaf> leaves);

/// Removes a body, and the references of its attachments, whose number is given.
void remove_body(kv::Transaction& tx, const Database& database, const kv::Versionstamp& sequence,
                 std::uint32_t chunks, std::uint32_t attachments, ContentWriter& contents);
/// The same for that of a Leaf or an OldRevision.
inline void remove_body(kv::Transaction& tx, const Database& database, const auto& revision,
                        ContentWriter& contents) {
  remove_body(tx, database, revision.sequence, revision.chunks, revision.attachments, contents);
}

}  // namespace divan::docs
