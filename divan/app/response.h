// Parsing the server's responses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "divan/app/command_line.h"

namespace divan::app {

/// Requests `target`. With --json, prints the response unchanged and returns nullopt; otherwise returns it in
/// json::compact()'s form.
std::optional<std::string> fetch(const QueryOptions& options, http::Client& client,
                                 const std::string& target);

/// A member of an object as text for output: a string without its quotes, other values as JSON, "" if it is
/// missing or null. The object must be in json::compact()'s form, also for the functions below.
std::string member_text(std::string_view object, std::string_view name);

/// A member as a number; 0 if it is missing.
std::int64_t member_number(std::string_view object, std::string_view name);

/// A required member; throws 502 "bad_response" if it is missing.
std::string_view required_member(std::string_view object, std::string_view name);

/// Reads the lines of a continuous feed; calls `show` for each row until it returns false. Throws 503
/// "connection_lost" if the server ends the feed.
void follow(http::Client& client, const std::string& target,
            const std::function<bool(std::string_view row)>& show);

}  // namespace divan::app
