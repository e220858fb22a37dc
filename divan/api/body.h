// Request bodies of Divan's own API.
#pragma once

#include <chrono>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "divan/base/error.h"

namespace divan::api {

using MemberNames = std::span<const std::string_view>;

/// A bad_request for a member with an invalid value: "`name` is value; expected ...". A long value is
/// shortened.
Error invalid_member(std::string_view name, std::string_view value, std::string_view expected);

/// A JSON object whose member names are known. An unknown member is an error, since a misspelt one would be
/// silently ignored. All functions throw bad_request for an unknown or invalid member, with its name in the
/// reason. A value type.
class Body {
 public:
  /// `json` is in json::compact()'s form.
  Body(std::string json, MemberNames known);
  Body(std::string json, std::initializer_list<std::string_view> known)
      : Body(std::move(json), MemberNames(known.begin(), known.size())) {}

  /// The JSON of a member; nullopt if it is missing. Valid as long as this object is neither moved nor
  /// destroyed.
  std::optional<std::string_view> raw(std::string_view name) const;

  // Return nullopt if the member is missing or null.
  std::optional<std::string> string(std::string_view name) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<bool> boolean(std::string_view name) const;
  /// A duration from 0 to `most`.
  std::optional<std::chrono::milliseconds> milliseconds(std::string_view name,
                                                        std::chrono::milliseconds most) const;
  std::optional<Body> object(std::string_view name, std::initializer_list<std::string_view> known) const;

  std::string required(std::string_view name) const;

  std::size_t bytes() const { return json_.size(); }

  /// The elements of a required array of strings.
  std::vector<std::string> strings(std::string_view name) const;
  /// The elements of a required array of objects with the members `known`.
  std::vector<Body> objects(std::string_view name, MemberNames known) const;
  std::vector<Body> objects(std::string_view name, std::initializer_list<std::string_view> known) const {
    return objects(name, MemberNames(known.begin(), known.size()));
  }

 private:
  std::string json_;
};

}  // namespace divan::api
