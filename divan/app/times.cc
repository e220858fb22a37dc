#include "divan/app/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "divan/base/error.h"

namespace divan::app {
namespace {

using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
constexpr Unit kUnits[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};
constexpr std::int64_t kMaxDuration = 36'525 * kUnits[0].ms;
constexpr std::int64_t kEndOfYear9999 = 253'402'300'800'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Parses a text from its beginning.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  bool take(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view take_while(bool (*wanted)(char)) {
    std::size_t end = 0;
    while (end < rest_.size() && wanted(rest_[end])) ++end;
    const auto taken = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return taken;
  }
  // A number with exactly `digits` digits.
  std::optional<int> number(std::size_t digits) {
    const auto taken = take_while(is_digit);
    if (taken.size() != digits) return std::nullopt;
    int value = 0;
    std::from_chars(taken.data(), taken.data() + taken.size(), value);
    return value;
  }

 private:
  std::string_view rest_;
};

std::optional<milliseconds> scan_date(Scanner& scanner) {
  const auto year = scanner.number(4);
  if (!year || !scanner.take("-")) return std::nullopt;
  const auto month = scanner.number(2);
  if (!month || !scanner.take("-")) return std::nullopt;
  const auto day = scanner.number(2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch();
}

// "HH:MM", as a time of day or an offset.
std::optional<milliseconds> scan_minutes(Scanner& scanner) {
  const auto hours = scanner.number(2);
  if (!hours || *hours > 23 || !scanner.take(":")) return std::nullopt;
  const auto minutes = scanner.number(2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
}

// ":SS" and ".fff", both optional.
std::optional<milliseconds> scan_seconds(Scanner& scanner) {
  if (!scanner.take(":")) return milliseconds(0);
  const auto seconds = scanner.number(2);
  if (!seconds || *seconds > 59) return std::nullopt;
  if (!scanner.take(".")) return std::chrono::seconds(*seconds);
  std::string digits(scanner.take_while(is_digit));
  if (digits.empty() || digits.size() > 3) return std::nullopt;
  digits.resize(3, '0');
  return std::chrono::seconds(*seconds) + milliseconds(std::stoi(digits));
}

std::optional<milliseconds> scan_offset(Scanner& scanner) {
  if (scanner.at_end() || scanner.take("Zz")) return milliseconds(0);
  const bool east = scanner.take("+");
  if (!east && !scanner.take("-")) return std::nullopt;
  const auto offset = scan_minutes(scanner);
  if (!offset) return std::nullopt;
  return east ? *offset : -*offset;
}

std::optional<milliseconds> scan_time(Scanner& scanner) {
  const auto date = scan_date(scanner);
  if (!date || scanner.at_end()) return date;
  if (!scanner.take("Tt ")) return std::nullopt;
  const auto minutes = scan_minutes(scanner);
  if (!minutes) return std::nullopt;
  const auto seconds = scan_seconds(scanner);
  if (!seconds) return std::nullopt;
  const auto offset = scan_offset(scanner);
  if (!offset) return std::nullopt;
  return *date + *minutes + *seconds - *offset;
}

}  // namespace

milliseconds parse_duration(std::string_view text) {
  const auto invalid = [&] {
    return bad_request(fmt::format(
        "Invalid duration `{}`; expected for example 500ms, 10s, 5m, 1h30m or 7d (at most 36525d).", text));
  };
  Scanner scanner(text);
  std::int64_t total = 0;
  if (scanner.at_end()) throw invalid();
  while (!scanner.at_end()) {
    const auto digits = scanner.take_while(is_digit);
    const auto name = scanner.take_while([](char c) { return !is_digit(c); });
    std::int64_t count = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), count).ec != std::errc())
      throw invalid();
    const auto* unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == std::end(kUnits) || count > kMaxDuration / unit->ms) throw invalid();
    total += count * unit->ms;
    if (total > kMaxDuration) throw invalid();
  }
  return milliseconds(total);
}

std::string format_duration(milliseconds duration) {
  std::string text;
  std::int64_t rest = duration.count();
  for (const auto& unit : kUnits) {
    if (rest >= unit.ms) text += fmt::format("{}{}", rest / unit.ms, unit.name);
    rest %= unit.ms;
  }
  return text.empty() ? "0s" : text;
}

std::int64_t parse_time(std::string_view text) {
  Scanner scanner(text);
  const auto time = scan_time(scanner);
  if (!time || !scanner.at_end() || time->count() < 0) {
    throw bad_request(fmt::format(
        "Invalid time `{}`; expected for example 2030-01-31, 2030-01-31T08:00Z or 2030-01-31T08:00:00+01:00.",
        text));
  }
  return time->count();
}

std::string format_time(std::int64_t ms) {
  if (ms < 0 || ms >= kEndOfYear9999) return fmt::format("{}", ms);
  const std::chrono::sys_time<milliseconds> time{milliseconds(ms)};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace divan::app
