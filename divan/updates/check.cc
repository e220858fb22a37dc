#include "divan/updates/check.h"

#include "divan/kv/tuple_packer.h"

namespace divan::updates {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

const std::string& prefix() {
  static const std::string packed = [] {
    std::string key;
    Packer(key).string("updates");
    return key;
  }();
  return packed;
}

}  // namespace

bool Check::row(std::string_view key, std::string_view value) {
  if (!key.starts_with(prefix())) return false;
  Reader reader(key.substr(prefix().size()));
  const auto part = reader.take_string();
  const std::string_view rest = reader.rest();
  // Both are packed (versionstamp), (database, kind): what one has in its key the other has in its value.
  std::string_view stamp;
  if (part == "feed" && kv::has_shape(rest, "v") && kv::has_shape(value, "ss")) {
    stamp = rest;
    feed_.add(std::string(rest) + std::string(value));
  } else if (part == "row" && kv::has_shape(rest, "ss") && kv::has_shape(value, "v")) {
    stamp = value;
    places_.add(std::string(value) + std::string(rest));
  } else if (part == "dirty" && kv::has_shape(rest, "is") && kv::has_shape(value, "v")) {
    stamp = value;
  } else {
    findings_.add("this is no row of the updates feed", key);
    return true;
  }
  if (kv::is_beyond(*Reader(stamp).take_versionstamp(), version_))
    findings_.add(fmt::format("its versionstamp is beyond the store's version {}", version_), key);
  return true;
}

void Check::finish(kv::RowSource&) {
  if (feed_ != places_)
    findings_.add(fmt::format("The updates feed has {} rows, and {} places of rows, which do not agree.",
                              feed_.count(), places_.count()));
}

}  // namespace divan::updates
