// A schedule of arbitrary bytes is rejected with a reason, or has increasing ticks, the first of which does
// not depend on the starting time before it. The last line is the time zone, if there are two.
#include "divan/jobs/cron.h"

#include "divan/jobs/schedule.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
using divan::jobs::Cron;
using divan::jobs::Schedule;

namespace {

// 2026-03-28T00:00:00Z, before clocks change in much of the world.
constexpr std::int64_t kFrom = 1'774'656'000'000;
constexpr std::int64_t kMinute = 60'000;

void check_ticks(const Schedule& schedule) {
  std::int64_t ms = kFrom;
  for (int i = 0; i < 4 && ms != Schedule::kNever; ++i) {
    const std::int64_t next = schedule.next_after(ms);
    check(next > ms);
    if (next == Schedule::kNever) return;
    check(next % 1000 == 0 && schedule.next_after(next - 1) == next);
    check(schedule.next_after(ms + (next - ms) / 2) == next || next - ms == 1);
    ms = next;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  answers(400, [&] { Schedule::of_json(text); });

  const auto line = text.find('\n');
  const std::string_view zone = line == text.npos ? "Europe/Berlin" : text.substr(line + 1);
  const std::string_view expression = text.substr(0, line);
  answers(400, [&] {
    const Schedule schedule = Schedule::parse(expression, zone);
    const Schedule again = Schedule::of_json(schedule.json());
    check(again.json() == schedule.json() && again.next_after(kFrom) == schedule.next_after(kFrom));
    check_ticks(schedule);
  });
  answers(400, [&] {
    const Cron cron = Cron::parse(expression);
    const auto first = cron.next(kFrom / kMinute, kFrom / kMinute + 1000);
    check(!first || cron.matches(*first));
  });
  return 0;
}
