#include "divan/js/turns.h"

#include <algorithm>
#include <tuple>

namespace divan::js {
namespace {

std::size_t index_of(Purpose purpose) { return static_cast<std::size_t>(purpose); }

}  // namespace

Turns::Call Turns::join(std::int64_t database, Purpose purpose) {
  return waiting_.emplace_back(Call{next_ticket_++, database, purpose});
}

void Turns::leave(const Call& call) {
  std::erase_if(waiting_, [&](const Call& other) { return other.ticket == call.ticket; });
}

bool Turns::is_next(const Call& call) const {
  const auto rank = [&](const Call& other) {
    return std::tuple(other.purpose != Purpose::check, held(other.database), other.ticket);
  };
  return may_begin(call.purpose) && std::none_of(waiting_.begin(), waiting_.end(), [&](const Call& other) {
           return rank(other) < rank(call) && may_begin(other.purpose);
         });
}

std::size_t Turns::kept_after(const Call& ending) const {
  return kept() + busy_[index_of(Purpose::check)] - (ending.purpose == Purpose::check ? 1 : 0);
}

void Turns::begin(const Call& call) {
  ++busy_[index_of(call.purpose)];
  ++held_[call.database];
}

void Turns::end(const Call& call) {
  --busy_[index_of(call.purpose)];
  const auto held = held_.find(call.database);
  if (--held->second == 0) held_.erase(held);
}

// Each purpose leaves room for those that are more urgent.
bool Turns::may_begin(Purpose purpose) const {
  const std::size_t background = busy_[index_of(Purpose::background)];
  const std::size_t urgent = background + busy_[index_of(Purpose::urgent)];
  const std::size_t all = urgent + busy_[index_of(Purpose::check)];
  if (all >= kept() + 1) return false;
  if (purpose == Purpose::check) return true;
  if (urgent >= kept()) return false;
  return purpose == Purpose::urgent || background < processes_;
}

std::size_t Turns::held(std::int64_t database) const {
  const auto found = held_.find(database);
  return found == held_.end() ? 0 : found->second;
}

}  // namespace divan::js
