#include "divan/index/views/builtin_reduce_rank.h"

#include <algorithm>

#include "divan/base/json.h"
#include "divan/collation/collation.h"

namespace divan::index::views {

// Returns false if the value is worse than all of best_, and best_ is full.
bool RankReducer::insert(std::string_view value) {
  encoded_.clear();
  collation::append_key(encoded_, value);
  const auto position = std::lower_bound(
      best_.begin(), best_.end(), encoded_, [this](const Ranked& ranked, const std::string& encoded) {
        return greatest_ ? ranked.encoded > encoded : ranked.encoded < encoded;
      });
  if (position != best_.end() && position->encoded == encoded_) {
    if (value < position->value) position->value = value;
    return true;
  }
  if (position == best_.end() && best_.size() == rank_) return false;
  best_.insert(position, Ranked{encoded_, std::string(value)});
  if (best_.size() > rank_) best_.pop_back();
  return true;
}

void RankReducer::merge(std::string_view partial, std::uint64_t) {
  if (!partial.starts_with('[') || !json::is_compact(partial))
    throw internal_error("A partial result of _top_N or _bottom_N is not an array.");
  // The partial result is sorted likewise, best first.
  json::for_each_element(partial, [this](std::string_view value) { return insert(value); });
}

std::string RankReducer::result() const {
  std::string text = "[";
  for (const Ranked& ranked : best_) {
    if (text.size() > 1) text += ',';
    text += ranked.value;
  }
  return text + "]";
}

}  // namespace divan::index::views
