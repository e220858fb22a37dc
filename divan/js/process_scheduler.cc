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

std::size_t Turns::reserved(Purpose purpose) const {
  switch (purpose) {
    case Purpose::background: return 0;
    case Purpose::trial: return reserved_;
    case Purpose::urgent: return 2 * reserved_;
    case Purpose::check: return 2 * reserved_ + 1;
  }
  return 0;
}

// Each purpose leaves processes to those that are more urgent.
bool Turns::may_begin(Purpose purpose) const {
  std::size_t busy = 0;
  for (const Purpose other : {Purpose::background, Purpose::trial, Purpose::urgent, Purpose::check}) {
    busy += busy_[index_of(other)];
    if (other >= purpose && busy >= processes_ + reserved(other)) return false;
  }
  return true;
}

std::size_t Turns::held(std::int64_t database) const {
  const auto found = held_.find(database);
  return found == held_.end() ? 0 : found->second;
}

}  // namespace divan::js
