#include "divan/kv/embedded/points.h"

#include <algorithm>
#include <iterator>

#include "divan/base/check.h"

namespace divan::kv::embedded {
namespace {

// Neighbours of a sweep that are together no more than this become one block.
constexpr std::size_t kMergedPoints = Points::kBlockPoints / 2;

template <class Vector>
auto first_at_or_after(Vector& points, std::string_view key) {
  return std::lower_bound(points.begin(), points.end(), key,
                          [](const auto& point, std::string_view wanted) { return point.key < wanted; });
}

}  // namespace

Points::Blocks::const_iterator Points::block_of(std::string_view key) const {
  const auto after = blocks_.upper_bound(key);
  return after == blocks_.begin() ? blocks_.end() : std::prev(after);
}

bool Points::set(std::string_view key, Version version) {
  if (blocks_.empty()) blocks_.try_emplace(std::string());
  DIVAN_CHECK(blocks_.begin()->first.empty(), "the first block does not begin with the empty key");
  const auto block = std::prev(blocks_.upper_bound(key));
  auto& [points, latest] = block->second;
  latest = std::max(latest, version);
  const auto point = first_at_or_after(points, key);
  if (point != points.end() && point->key == key) {
    point->version = version;
    return false;
  }
  const bool at_the_end = point == points.end();
  points.insert(point, {std::string(key), version});
  ++size_;
  if (points.size() > kBlockPoints) split(block, at_the_end);
  return true;
}

// Keys that grow, as those of a feed, leave full blocks behind.
void Points::split(Blocks::iterator block, bool at_the_end) {
  auto& points = block->second.points;
  const auto middle =
      points.begin() + static_cast<std::ptrdiff_t>(at_the_end ? kBlockPoints : kBlockPoints / 2);
  Block upper{{std::make_move_iterator(middle), std::make_move_iterator(points.end())}, block->second.latest};
  points.erase(middle, points.end());
  DIVAN_CHECK(!upper.points.empty(), "a block is split at its end");
  std::string bound = upper.points.front().key;
  const bool is_new = blocks_.emplace(std::move(bound), std::move(upper)).second;
  DIVAN_CHECK(is_new, "two blocks begin with one key");
}

bool Points::changed_since(std::string_view key, Version version) const {
  const auto block = block_of(key);
  if (block == blocks_.end() || block->second.latest <= version) return false;
  const auto& points = block->second.points;
  const auto point = first_at_or_after(points, key);
  return point != points.end() && point->key == key && point->version > version;
}

bool Points::changed_since(std::string_view begin, std::string_view end, Version version) const {
  for (auto block = block_of(begin); block != blocks_.end() && block->first < end; ++block) {
    const auto& [points, latest] = block->second;
    if (latest <= version) continue;
    for (auto point = first_at_or_after(points, begin); point != points.end() && point->key < end; ++point) {
      if (point->version > version) return true;
    }
  }
  return false;
}

std::size_t Points::sweep(std::size_t steps, Version oldest) {
  std::size_t bytes = 0;
  if (blocks_.empty()) return bytes;
  auto block = std::prev(blocks_.upper_bound(cursor_));
  for (std::size_t seen = 0; seen < steps && block != blocks_.end();) {
    auto& points = block->second.points;
    Version& latest = block->second.latest;
    seen += points.size() + 1;
    latest = 0;
    std::erase_if(points, [&](const Point& point) {
      const bool is_old = point.version < oldest;
      DIVAN_CHECK(size_ > 0, "a point that was not counted is forgotten");
      if (is_old) bytes += point.key.size();
      if (!is_old) latest = std::max(latest, point.version);
      size_ -= is_old;
      return is_old;
    });
    if (block == blocks_.begin()) {
      ++block;
      continue;
    }
    auto& before = std::prev(block)->second;
    if (before.points.size() + points.size() <= kMergedPoints) {
      before.latest = std::max(before.latest, latest);
      std::move(points.begin(), points.end(), std::back_inserter(before.points));
      block = blocks_.erase(block);
    } else {
      ++block;
    }
  }
  cursor_ = block == blocks_.end() ? std::string() : block->first;
  return bytes;
}

}  // namespace divan::kv::embedded
