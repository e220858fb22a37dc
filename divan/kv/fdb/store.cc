#include "divan/kv/fdb/store.h"

#include "divan/kv/tuple_packer.h"

namespace divan::kv::fdb {
namespace {

std::string packed(std::string_view name) {
  std::string key;
  tuple::Packer(key).string(name);
  return key;
}

}  // namespace

Place::Place(std::string_view name) : prefix_(packed(name)) {}

std::string Place::own_key(std::string_view name) const { return end() + packed(name); }
std::string Place::format_key() const { return own_key("format"); }
std::string Place::dump_key() const { return own_key("dump"); }

std::string Place::mark_key(Version version, std::string_view id) const {
  std::string key = own_key("txid");
  tuple::Packer packer(key);
  packer.integer(version);
  if (!id.empty()) packer.bytes(id);
  return key;
}

}  // namespace divan::kv::fdb
