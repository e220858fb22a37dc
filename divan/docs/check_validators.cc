#include "divan/docs/check_validators.h"

#include <fmt/core.h>

#include "divan/docs/keys.h"
#include "divan/docs/leaf_row.h"
#include "divan/docs/validation.h"
#include "divan/kv/tuple.h"

namespace divan::docs {
namespace {

using kv::tuple::Reader;

// Design documents with the last of their leaves, the winner.
std::vector<std::pair<std::string, Leaf>> design_winners(kv::RowSource& rows, const DatabaseKeys& keys) {
  const std::string revs = keys.section(Section::revs);
  std::string prefix;
  keys.packer(prefix, Section::revs).string(kDesignPrefix);
  prefix.pop_back();  // the end of the string: ids that begin with it
  std::vector<std::pair<std::string, Leaf>> winners;
  rows.scan({prefix, kv::strinc(prefix)}, [&](std::string_view key, std::string_view value) {
    try {
      Reader reader(key.substr(revs.size()));
      auto id = reader.take_string();
      if (!id) return true;
      auto leaf = decode_leaf(reader, value);
      if (winners.empty() || winners.back().first != *id) winners.emplace_back(*std::move(id), Leaf());
      winners.back().second = std::move(leaf);
    } catch (const Error&) {}  // the damaged row is a finding already
    return true;
  });
  return winners;
}

std::string read_body(kv::RowSource& rows, const DatabaseKeys& keys, const Leaf& leaf) {
  std::string body;
  for (std::uint32_t chunk = 0; chunk < leaf.chunks; ++chunk)
    body += rows.get(keys.body(leaf.sequence, chunk)).value_or("");
  return body;
}

}  // namespace

void check_validators(kv::RowSource& rows, kv::Findings& findings, const std::string& database,
                      std::int64_t number) {
  const DatabaseKeys keys(number);
  std::vector<Validator> validators;
  for (const auto& [id, winner] : design_winners(rows, keys)) {
    if (!winner.deleted && has_validation(read_body(rows, keys, winner)))
      validators.push_back({id, winner.revision()});
  }
  const std::string wanted = format_validators(validators);
  const std::string list = rows.get(keys.config(kValidators)).value_or("");
  if (list == wanted) return;
  findings.add(fmt::format(
      "Database {}: the design documents that validate its documents are {}, but the list names {}. "
      "Write them again.",
      database, wanted.empty() ? "none" : wanted, list.empty() ? "none" : list));
}

}  // namespace divan::docs
