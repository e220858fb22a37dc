#include "divan/updates/check.h"

#include <fmt/core.h>

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

// The position of a row and its database and kind, in the same form whether read from the row or from its
// index entry.
std::string position_entry(std::string_view part, std::string_view stamp, std::string_view what) {
  return std::string(part) + std::string(stamp) + std::string(what);
}

}  // namespace

bool Check::row(std::string_view key, std::string_view value) {
  if (!key.starts_with(prefix())) return false;
  Reader reader(key.substr(prefix().size()));
  const auto part = reader.take_string();
  const std::string_view rest = reader.rest();
  std::string_view stamp;
  // The value of a row is the key of its index entry.
  if (part == "feed" && kv::has_shape(rest, "v") && kv::has_shape(value, "ss")) {
    rows_.add(position_entry("feed", stamp = rest, value));
  } else if (part == "row" && kv::has_shape(rest, "ss") && kv::has_shape(value, "v")) {
    positions_.add(position_entry("feed", stamp = value, rest));
  } else if (part == "event" && kv::has_shape(rest, "v") && kv::has_shape(value, "ssss")) {
    rows_.add(position_entry("event", stamp = rest, value));
  } else if (part == "place" && kv::has_shape(rest, "ssss") && kv::has_shape(value, "v")) {
    positions_.add(position_entry("event", stamp = value, rest));
  } else if (part == "dirty" && (kv::has_shape(rest, "is") || kv::has_shape(rest, "issss")) &&
             kv::has_shape(value, "v")) {
    stamp = value;
  } else if (part == "told" && rest.empty() && kv::has_shape(value, "v")) {
    stamp = value;
  } else {
    findings_.add("this is no row of the updates feed", key);
    return true;
  }
  if (kv::is_beyond(*Reader(stamp).take_versionstamp(), version_))
    findings_.add(fmt::format("its versionstamp is greater than the store's version {}", version_), key);
  return true;
}

void Check::finish(kv::RowSource&) {
  if (rows_ != positions_)
    findings_.add(fmt::format("The updates feed has {} rows, and {} positions of rows, which do not agree.",
                              rows_.count(), positions_.count()));
}

}  // namespace divan::updates
