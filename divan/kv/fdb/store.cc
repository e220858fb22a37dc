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

Subspace::Subspace(std::string_view name) : prefix_(packed(name)) {}

std::string Subspace::own_key(std::string_view name) const { return end() + packed(name); }
std::string Subspace::format_key() const { return own_key("format"); }
std::string Subspace::dump_key() const { return own_key("dump"); }

}  // namespace divan::kv::fdb
