#include "divan/api/unsupported.h"

#include <fmt/core.h>

#include <algorithm>

namespace divan::api {
namespace {

// docs/differences.md has the same list for readers.
constexpr Unsupported kUnsupported[] = {
    {Level::server, "_nouveau_analyze", "POST", "the API of Nouveau"},
    {Level::node, "_smoosh", "GET", "automatic compaction"},
    {Level::database, "_nouveau_cleanup", "POST", "the API of Nouveau"},
    {Level::database, "_time_seq", "GET,DELETE", "changes by time"},
    {Level::design_document, "_nouveau", "GET,POST", "the API of Nouveau"},
    {Level::design_document, "_nouveau_info", "GET", "the API of Nouveau"},
};

}  // namespace

const Unsupported* find_unsupported(Level level, std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kUnsupported, [&](const Unsupported& entry) { return entry.level == level && entry.name == name; });
  return found == std::end(kUnsupported) ? nullptr : found;
}

void reject_unsupported(const Call& call, const Unsupported& entry) {
  call.allow(entry.methods);
  throw_not_implemented(fmt::format("`{}` ({}) is not supported yet.", entry.name, entry.feature));
}

void throw_not_implemented(const std::string& reason) { throw Error(501, "not_implemented", reason); }

}  // namespace divan::api
