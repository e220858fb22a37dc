// A range of keys.
#pragma once

#include <string>
#include <string_view>

namespace divan::kv {

/// The keys from `begin` up to but not including `end`. A value.
struct KeyRange {
  std::string begin;
  std::string end;
  bool contains(std::string_view key) const { return begin <= key && key < end; }
};

/// The keys that continue a packed tuple: every element's first byte is below 0xff.
inline KeyRange below(const std::string& packed) { return {packed, packed + '\xff'}; }

}  // namespace divan::kv
