#include "divan/kv/subspace.h"

#include "divan/base/error.h"

namespace divan::kv {

std::string Subspace::pack(const tuple::Tuple& tuple) const { return prefix_ + tuple::pack(tuple); }

std::string Subspace::pack_with_versionstamp(const tuple::Tuple& tuple) const {
  return tuple::pack_with_versionstamp(tuple, prefix_);
}

tuple::Tuple Subspace::unpack(std::string_view key) const { return tuple::unpack(reader(key).rest()); }

tuple::Packer Subspace::packer(std::string& key) const {
  key = prefix_;
  return tuple::Packer(key);
}

tuple::Reader Subspace::reader(std::string_view key) const {
  if (!contains(key)) {
    throw Error(500, "corrupt_key",
                "The key " + tuple::describe(key) + " is not below " + tuple::describe(prefix_) + ".");
  }
  return tuple::Reader(key.substr(prefix_.size()));
}

}  // namespace divan::kv
