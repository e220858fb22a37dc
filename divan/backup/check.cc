#include "divan/backup/check.h"

namespace divan::backup {

bool Check::row(std::string_view key, std::string_view value) {
  kv::tuple::Reader reader(key);
  if (reader.take_string() != "restore") return false;
  const auto part = reader.take_string();
  if (part == "db" && kv::has_shape(reader.rest(), "si") && kv::has_shape(value, "isi")) {
    databases_.allow_orphans(*kv::tuple::Reader(value).take_int());
    ++unfinished_;
  } else if (part == "uploads" && kv::has_shape(reader.rest(), "ssib") && value.empty()) {
    return true;
  } else if (part != "open" || !kv::has_shape(reader.rest(), "s") || !kv::has_shape(value, "iii")) {
    findings_.add("invalid row of a restore", key);
  }
  return true;
}

}  // namespace divan::backup
