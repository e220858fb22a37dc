#include "divan/purge/ttl.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::purge {
namespace {

constexpr std::string_view kMember = "deleted_document_ttl";
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kLongest = 100 * 365 * kDay;  // well below what Duration holds

struct Unit {
  std::string_view name;
  std::int64_t seconds;
};
constexpr Unit kUnits[] = {
    {"s", 1},
    {"sec", 1},
    {"second", 1},
    {"seconds", 1},
    {"min", 60},
    {"minute", 60},
    {"minutes", 60},
    {"h", 3600},
    {"hrs", 3600},
    {"hour", 3600},
    {"hours", 3600},
    {"d", kDay},
    {"day", kDay},
    {"days", kDay},
    {"w", 7 * kDay},
    {"week", 7 * kDay},
    {"weeks", 7 * kDay},
    {"mon", 30 * kDay},
    {"month", 30 * kDay},
    {"months", 30 * kDay},
    {"y", 365 * kDay},
    {"year", 365 * kDay},
    {"years", 365 * kDay},
};

}  // namespace

std::optional<std::chrono::seconds> parse_period(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest == end || *rest != '_' || number <= 0) return std::nullopt;
  const std::string_view name(rest + 1, static_cast<std::size_t>(end - rest - 1));
  const auto* const unit = std::ranges::find(kUnits, name, &Unit::name);
  if (unit == std::end(kUnits) || number > kLongest / unit->seconds) return std::nullopt;
  return std::chrono::seconds(number * unit->seconds);
}

void check_auto_purge(std::string_view json) {
  const bool is_object = json::for_each_member(json, [](std::string_view name, std::string_view value) {
    if (json::unescape(name) != kMember) throw bad_request("invalid auto purge property");
    const auto text = json::string_value(value);
    if (!text || (*text != kInfinity && !parse_period(*text)))
      throw bad_request("deleted_document_ttl must be a valid string");
    return true;
  });
  if (!is_object) throw bad_request("malformed auto purge body");
}

std::optional<std::chrono::seconds> deleted_document_ttl(std::string_view settings,
                                                         std::string_view fallback) {
  const auto own = json::member(settings.empty() ? "{}" : settings, kMember);
  if (const auto text = own ? json::string_value(*own) : std::nullopt) return parse_period(*text);
  return parse_period(fallback);
}

}  // namespace divan::purge
