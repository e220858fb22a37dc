// Reading what the server answers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "divan/app/command_line.h"

namespace divan::app {

/// Asks for `target`. With --json the answer is printed as it is, and there is nothing more to do; otherwise
/// it comes in json::compact()'s form.
std::optional<std::string> fetch(const QueryOptions& options, http::Client& client,
                                 const std::string& target);

/// A member of an object as text for people: a string without its quotes, other values as JSON, "" if it is
/// missing or null. The object is in json::compact()'s form, as are those of the functions below.
std::string member_text(std::string_view object, std::string_view name);

/// A member that is a number; 0 if it is missing.
std::int64_t member_number(std::string_view object, std::string_view name);

/// A member that must be there, or the server is none that we know: throws 502 "bad_response".
std::string_view required_member(std::string_view object, std::string_view name);

/// Goes through the lines of a feed that has no end; `show` is given each row and answers whether to go on.
/// Throws 503 "connection_lost" when it is the server that ends the feed.
void follow(http::Client& client, const std::string& target,
            const std::function<bool(std::string_view row)>& show);

}  // namespace divan::app
