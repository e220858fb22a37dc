// Bodies of many revisions at once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "divan/docs/catalog.h"
#include "divan/docs/rev_tree.h"

namespace divan::docs {

/// The bodies of revisions, in their order, each as read_body() returns it. In an embedded store those that
/// are near one another, such as the bodies of documents that were written one after the other, are read as
/// ranges, which takes a fraction of the time. Reads a snapshot. Throws an internal error if one is missing.
std::vector<std::string> read_bodies(kv::Transaction& tx, const Database& database,
                                     std::span<const Leaf> leaves);

}  // namespace divan::docs
