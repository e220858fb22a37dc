#include "divan/jobs/schedule.h"

#include <absl/time/time.h>
#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::jobs {
namespace {

constexpr std::int64_t kMsPerMinute = 60'000;
constexpr std::size_t kMaxZoneBytes = 100;
constexpr std::int64_t kMsPerSecond = 1'000;
// 2400-01-01 00:00 UTC. The library knows a zone's transitions for somewhat longer.
constexpr std::int64_t kHorizon = 13'569'465'600'000;

// The first minute that begins at or after the local time.
LocalMinute minute_from(std::int64_t local_ms) {
  const std::int64_t floor = local_ms / kMsPerMinute - (local_ms % kMsPerMinute < 0 ? 1 : 0);
  return floor + (floor * kMsPerMinute < local_ms ? 1 : 0);
}

// The library builds a path from the name, below the system's database, which also has names that differ by
// machine (localtime) and clocks that count leap seconds (right/).
bool is_zone_name(std::string_view name) {
  constexpr std::string_view kPunctuation = "/_+-";
  if (name.empty() || name.size() > kMaxZoneBytes || name.front() == '/' || name.back() == '/') return false;
  // The library would cache a zone for each spelling of a file's name.
  if (name.find("//") != std::string_view::npos) return false;
  for (const std::string_view other : {"localtime", "posixrules", "Factory", "posix/", "right/"}) {
    if (name.starts_with(other)) return false;
  }
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPunctuation.find(c) != std::string_view::npos;
  });
}

// If the library does not find a zone, it caches that for ever. So it is called only for zones that exist,
// and a server knows a zone as soon as it is installed.
bool load_zone(const std::string& name, absl::TimeZone& zone) {
  const char* set = std::getenv("TZDIR");
  const std::filesystem::path database = set != nullptr && *set != '\0' ? set : "/usr/share/zoneinfo";
  std::error_code unreadable;
  const bool is_there =
      name == "UTC" || name == "UTC0" || std::filesystem::is_regular_file(database / name, unreadable);
  return is_there && absl::LoadTimeZone(name, &zone);
}

}  // namespace

// The time between two transitions of a zone's clocks, in milliseconds.
struct Schedule::Span {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t offset;         // local time minus UTC
  std::int64_t offset_before;  // the offset before `begin`
};

struct Schedule::Zone {
  absl::TimeZone rules;

  explicit Zone(std::string_view name) {
    if (!is_zone_name(name) || !load_zone(std::string(name), rules)) {
      throw bad_request(fmt::format(
          "Unknown time zone `{}`; expected a name of the tz database, such as UTC or Europe/Berlin.",
          is_utf8(name) ? name : "(not UTF-8)"));
    }
  }

  std::int64_t offset_at(std::int64_t ms) const {
    return rules.At(absl::FromUnixMillis(ms)).offset * kMsPerSecond;
  }

  std::int64_t time_of(const absl::TimeZone::CivilTransition& change) const {
    // If clocks are set back, they reach `to` twice.
    const auto to = rules.At(change.to);
    return absl::ToUnixMillis(to.kind == absl::TimeZone::TimeInfo::REPEATED ? to.trans : to.pre);
  }

  Span span_at(std::int64_t ms) const {
    Span span{.begin = 0, .end = kHorizon, .offset = offset_at(ms), .offset_before = 0};
    absl::TimeZone::CivilTransition change;
    // Transitions are at whole seconds; PrevTransition() excludes the given time.
    const bool begins = rules.PrevTransition(absl::FromUnixSeconds(ms / kMsPerSecond + 1), &change);
    if (begins) span.begin = time_of(change);
    span.offset_before = begins ? offset_at(span.begin - 1) : span.offset;
    if (rules.NextTransition(absl::FromUnixMillis(ms), &change))
      span.end = std::min(kHorizon, time_of(change));
    return span;
  }
};

Schedule::Schedule(std::string_view cron, std::string_view time_zone, Missed missed)
    : expression_(cron),
      time_zone_(time_zone),
      missed_(missed),
      cron_(Cron::parse(cron)),
      zone_(std::make_shared<const Zone>(time_zone)) {}

Schedule Schedule::parse(std::string_view cron, std::string_view time_zone, Missed missed) {
  return {cron, time_zone, missed};
}

Schedule Schedule::of_json(std::string_view text) {
  const auto value = json::parse(text);
  if (!value.is_object())
    throw bad_request("Invalid schedule; expected an object with `cron`, `time_zone` and `missed`.");
  std::string cron;
  std::string time_zone = "UTC";
  std::string missed = "once";
  for (const auto& [name, member] : value.get_object()) {
    std::string* known = nullptr;
    if (name == "cron") known = &cron;
    if (name == "time_zone") known = &time_zone;
    if (name == "missed") known = &missed;
    if (known == nullptr)
      throw bad_request(fmt::format("Unknown member `{}` of a schedule.", std::string_view(name)));
    if (!member.is_string())
      throw bad_request(
          fmt::format("Invalid `{}` of a schedule; expected a string.", std::string_view(name)));
    *known = std::string_view(member.get_string());
  }
  if (cron.empty()) throw bad_request("Missing `cron` of a schedule; expected a cron expression.");
  if (missed != "once" && missed != "skip")
    throw bad_request("Invalid `missed` of a schedule; expected `once` or `skip`.");
  return parse(cron, time_zone, missed == "once" ? Missed::once : Missed::skip);
}

std::string Schedule::json() const {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("cron").string(expression_).key("time_zone").string(time_zone_);
  writer.key("missed").string(missed_ == Missed::once ? "once" : "skip").end_object();
  return out;
}

std::int64_t Schedule::next_after(std::int64_t ms) const {
  ms = std::max<std::int64_t>(ms, -1);
  while (ms < kHorizon - 1) {
    const Span span = zone_->span_at(ms + 1);
    const std::int64_t local_begin = span.begin + span.offset;
    const std::int64_t local_before = span.begin + span.offset_before;
    if (!cron_.repeats() && span.begin > ms && local_before < local_begin &&
        cron_.next(minute_from(local_before), minute_from(local_begin))) {
      return span.begin;
    }
    std::int64_t from = std::max(ms + 1, span.begin) + span.offset;
    if (!cron_.repeats() && local_before > local_begin) from = std::max(from, local_before);
    if (const auto minute = cron_.next(minute_from(from), minute_from(span.end + span.offset)))
      return *minute * kMsPerMinute - span.offset;
    ms = span.end - 1;
  }
  return kNever;
}

}  // namespace divan::jobs
