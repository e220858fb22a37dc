// Members of the requests of Mango, checked with CouchDB's errors (mango_opts.erl).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "divan/base/error.h"
#include "divan/base/json_members.h"

namespace divan::mango {

/// Reads the members of a request. Not thread-safe.
class Options {
 public:
  /// `object` is in json::compact()'s form, and must outlive this object. Throws bad_request unless it is an
  /// object.
  explicit Options(std::string_view object);

  std::optional<std::string_view> find(std::string_view name);
  /// Throws missing_required_key (400).
  std::string_view require(std::string_view name);
  /// Throws invalid_boolean (400).
  bool boolean(std::string_view name, bool fallback);
  /// Throws invalid_non_neg_integer or, if `least` is 1, invalid_pos_integer (400).
  std::uint64_t integer(std::string_view name, std::uint64_t fallback, std::uint64_t least = 0);
  /// Throws invalid_string (400).
  std::optional<std::string> string(std::string_view name);

  /// Throws invalid_key (400) if there are members other than those that were read.
  void end() const;

 private:
  json::Members members_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace divan::mango
