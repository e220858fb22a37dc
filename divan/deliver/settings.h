// How the jobs of a type are delivered: the member `deliver` of the type's settings. docs/delivery.md
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace divan::deliver {

struct Settings {
  std::string url{};
  std::string method = "POST";
  std::vector<std::pair<std::string, std::string>> headers{};  ///< names and values
  std::chrono::milliseconds timeout{30'000};                   ///< of a request with its response
  std::size_t concurrency = 10;                                ///< the most requests at a time
  std::optional<double> per_second{};                          ///< the most requests; nullopt: no limit
  std::vector<std::string> secrets{};                          ///< as they are given: "whsec_..."
  std::set<int> fail_on{};  ///< statuses with which jobs fail permanently, besides 409 and 410
  bool keeps_result = false;

  /// Of the URL.
  std::string host{}, origin{};
};

/// Parses a JSON object. Throws bad_request for unknown members and invalid values.
Settings parse_settings(std::string_view json);

/// The settings `present` (empty: none), changed by a request: members that are null get their defaults,
/// others replace those of `present`, and "***" stands for the secret, or the value of a header field, that
/// `present` has. Returns JSON for parse_settings(). Throws bad_request if the result is not valid.
std::string change_settings(std::string_view present, std::string_view change);

/// The settings as they are shown to administrators: with "***" for secrets and the values of header fields.
std::string shown_settings(std::string_view json);
/// As they are shown to others: only the host.
std::string shown_host(std::string_view json);

}  // namespace divan::deliver
