#include "divan/app/server_check.h"

#include "divan/kv/tuple_packer.h"

namespace divan::app {
namespace {

constexpr std::size_t kUuidBytes = 32;

}  // namespace

bool ServerCheck::row(std::string_view key, std::string_view value) {
  kv::tuple::Reader reader(key);
  const auto first = reader.take_string();
  if (first == "server_uuid") {
    if (!reader.at_end() || value.size() != kUuidBytes)
      findings_.add("the server's identity is damaged", key);
    return true;
  }
  if (first != "txid") return false;
  // The commit has replaced the value with its versionstamp.
  if (!kv::has_shape(reader.rest(), "ib") || value.size() != kv::Versionstamp::kTransactionSize)
    findings_.add("the mark of a commit is damaged", key);
  return true;
}

}  // namespace divan::app
