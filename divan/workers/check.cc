#include "divan/workers/check.h"

#include <fmt/core.h>

#include "divan/kv/tuple_packer.h"

namespace divan::workers {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

const std::string& prefix() {
  static const std::string packed = [] {
    std::string key;
    Packer(key).string("workers");
    return key;
  }();
  return packed;
}

std::string registration(const std::string& role, std::string_view id, std::string_view value) {
  std::string packed;
  Packer(packed).string(role).string(*Reader(value).take_string());
  return packed.append(id);
}

}  // namespace

bool Check::row(std::string_view key, std::string_view value) {
  if (!key.starts_with(prefix())) return false;
  Reader reader(key.substr(prefix().size()));
  const auto role = reader.take_string();
  const auto part = reader.take_string();
  const std::string_view id = reader.rest();
  const bool is_version = part == "vs" || (part == "gone" && role && role->empty());
  if (is_version && id.empty() && kv::has_shape(value, "v")) {
    if (kv::is_beyond(*Reader(value).take_versionstamp(), version_))
      findings_.add(fmt::format("its versionstamp is greater than the store's version {}", version_), key);
  } else if (part == "w" && kv::has_shape(id, "s") && kv::has_shape(value, "sis")) {
    workers_.add(registration(*role, id, value));
  } else if (part == "hb" && kv::has_shape(id, "s") && kv::has_shape(value, "si")) {
    heartbeats_.add(registration(*role, id, value));
  } else if (part == "hold" && kv::has_shape(id, "s") && kv::has_shape(value, "ss")) {
    // The registration does not matter while the server is not running.
  } else if (part == "load" && kv::has_shape(id, "s") && kv::has_shape(value, "s")) {
    // The load does not matter either.
  } else {
    findings_.add("not a valid row of a worker", key);
  }
  return true;
}

void Check::finish(kv::RowSource&) {
  if (workers_ != heartbeats_)
    findings_.add(fmt::format("There are {} workers and {} heartbeats, which do not agree.", workers_.count(),
                              heartbeats_.count()));
}

}  // namespace divan::workers
