// How long deleted documents are kept before they are purged: "3_days".
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace divan::purge {

/// Parses a period in CouchDB's form, a positive number and a unit: s, sec, second(s); min, minute(s); h,
/// hrs, hour(s); d, day(s); w, week(s); mon, month(s) of 30 days; y, year(s) of 365 days. nullopt if it has
/// another form, or is longer than 1,000 years.
std::optional<std::chrono::seconds> parse_period(std::string_view text);

/// The word for no limit.
inline constexpr std::string_view kInfinity = "infinity";

/// Checks the settings of a database, {"deleted_document_ttl": "3_days"}, or "infinity"; both empty and
/// without the member it has the server's default. Throws bad_request, in CouchDB's words.
void check_auto_purge(std::string_view json);

/// The time for which a database keeps deleted documents: its own settings (empty: none), otherwise
/// `fallback`, the server's. nullopt: forever.
std::optional<std::chrono::seconds> deleted_document_ttl(std::string_view settings,
                                                         std::string_view fallback);

}  // namespace divan::purge
