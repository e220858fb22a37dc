#include "divan/js/result.h"

#include <algorithm>

#include "divan/base/check.h"

namespace divan::js {

bool MapResult::timed_out() const {
  return std::any_of(failures_.begin(), failures_.end(),
                     [](const Failure& failure) { return failure.kind == FailureKind::timeout; });
}

void MapResult::append(MapResult more) {
  DIVAN_CHECK(more.functions_ == functions_, "results of {} functions are appended to those of {}",
              more.functions_, functions_);
  DIVAN_CHECK(more.cells_.size() == more.documents_ * functions_, "{} cells of {} documents",
              more.cells_.size(), more.documents_);
  const auto first = static_cast<std::uint32_t>(emitted_.size());
  const auto failure = static_cast<std::uint32_t>(failures_.size());
  for (auto cell : more.cells_) {
    cell.first += first;
    if (cell.failure != kNone) cell.failure += failure;
    cells_.push_back(cell);
  }
  emitted_.insert(emitted_.end(), more.emitted_.begin(), more.emitted_.end());
  std::move(more.failures_.begin(), more.failures_.end(), std::back_inserter(failures_));
  std::move(more.bytes_.begin(), more.bytes_.end(), std::back_inserter(bytes_));
  documents_ += more.documents_;
}

void MapResult::append_failed(const Failure& failure) {
  const auto index = static_cast<std::uint32_t>(failures_.size());
  failures_.push_back(failure);
  cells_.insert(cells_.end(), functions_, Cell{0, 0, index});
  ++documents_;
}

}  // namespace divan::js
