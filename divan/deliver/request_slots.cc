#include "divan/deliver/request_slots.h"

#include <algorithm>
#include <numeric>

#include "divan/base/check.h"

namespace divan::deliver {
namespace {

// Half of the slots that others leave free, without its own. Some of its own may be to another host.
std::size_t half_of_rest(std::size_t limit, std::size_t used, std::size_t own) {
  const auto left = limit - std::min(limit, used - std::min(own, used));
  const auto most = std::max<std::size_t>(1, left / 2);
  return std::min(most > own ? most - own : 0, limit - std::min(limit, used));
}

}  // namespace

RequestSlots::Free RequestSlots::free(const std::string& host, std::size_t own, Speed speed) const {
  const auto found = hosts_.find(host);
  const auto of_host = found != hosts_.end() ? found->second : 0;
  const auto all = std::accumulate(used_.begin(), used_.end(), std::size_t{0});
  const auto count = std::min(half_of_rest(limits_.requests, all, own),
                              half_of_rest(limits_.requests_of_host, of_host, own));
  if (bytes_ >= limits_.bytes) return {};
  if (speed == Speed::fast) return {count, Class::fast};
  const auto others = limits_.requests - limits_.requests / 4;
  if (used(Class::other) < others) return {std::min(count, others - used(Class::other)), Class::other};
  const bool may_be_first = speed == Speed::unknown && own == 0 && used(Class::first) < limits_.requests / 8;
  return {may_be_first ? std::min<std::size_t>(count, 1) : 0, Class::first};
}

void RequestSlots::take(const std::string& host, Class slot_class, std::size_t bytes) {
  ++hosts_[host];
  ++used_[static_cast<std::size_t>(slot_class)];
  bytes_ += bytes;
}

void RequestSlots::give_back(const std::string& host, Class slot_class, std::size_t bytes) {
  const auto found = hosts_.find(host);
  DIVAN_CHECK(found != hosts_.end() && used(slot_class) > 0 && bytes_ >= bytes,
              "a slot is given back that was not taken");
  if (--found->second == 0) hosts_.erase(found);
  --used_[static_cast<std::size_t>(slot_class)];
  bytes_ -= bytes;
}

}  // namespace divan::deliver
