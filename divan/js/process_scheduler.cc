#include "divan/js/process_scheduler.h"

#include <algorithm>
#include <tuple>

#include "divan/base/check.h"

namespace divan::js {
namespace {

std::size_t index_of(Purpose purpose) { return static_cast<std::size_t>(purpose); }

}  // namespace

ProcessScheduler::Call ProcessScheduler::enqueue(std::int64_t database, Purpose purpose) {
  return waiting_.emplace_back(Call{next_id_++, database, purpose});
}

void ProcessScheduler::dequeue(const Call& call) {
  const auto erased = std::erase_if(waiting_, [&](const Call& other) { return other.id == call.id; });
  DIVAN_CHECK(erased == 1, "call {} is in the queue {} times", call.id, erased);
}

bool ProcessScheduler::is_next(const Call& call) const {
  const auto rank = [&](const Call& other) {
    return std::tuple(other.purpose != Purpose::check, held(other.database), other.id);
  };
  return may_begin(call.purpose) && std::none_of(waiting_.begin(), waiting_.end(), [&](const Call& other) {
           return rank(other) < rank(call) && may_begin(other.purpose);
         });
}

std::size_t ProcessScheduler::kept_after(const Call& ending) const {
  DIVAN_CHECK(busy_[index_of(ending.purpose)] > 0, "call {}, which has not begun, ends", ending.id);
  const bool is_additional = ending.purpose == Purpose::check || ending.purpose == Purpose::list;
  return kept() + busy_[index_of(Purpose::check)] + busy_[index_of(Purpose::list)] - (is_additional ? 1 : 0);
}

void ProcessScheduler::begin(const Call& call) {
  ++busy_[index_of(call.purpose)];
  ++held_[call.database];
}

void ProcessScheduler::end(const Call& call) {
  DIVAN_CHECK(busy_[index_of(call.purpose)] > 0, "call {}, which has not begun, ends", call.id);
  --busy_[index_of(call.purpose)];
  const auto held = held_.find(call.database);
  DIVAN_CHECK(held != held_.end() && held->second > 0, "call {} ends, and its database has no calls",
              call.id);
  if (--held->second == 0) held_.erase(held);
}

std::size_t ProcessScheduler::reserved(Purpose purpose) const {
  switch (purpose) {
    case Purpose::background: return 0;
    case Purpose::trial: return reserved_;
    case Purpose::urgent: return 2 * reserved_;
    case Purpose::check: return 2 * reserved_ + 1;
    case Purpose::list: return 0;
  }
  return 0;
}

// Each purpose leaves the reserved processes to more urgent ones.
bool ProcessScheduler::may_begin(Purpose purpose) const {
  if (purpose == Purpose::list) return true;
  std::size_t busy = 0;
  for (const Purpose other : {Purpose::background, Purpose::trial, Purpose::urgent, Purpose::check}) {
    busy += busy_[index_of(other)];
    if (other >= purpose && busy >= processes_ + reserved(other)) return false;
  }
  return true;
}

std::size_t ProcessScheduler::held(std::int64_t database) const {
  const auto found = held_.find(database);
  return found == held_.end() ? 0 : found->second;
}

}  // namespace divan::js
