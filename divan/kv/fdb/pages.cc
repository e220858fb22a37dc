#include "divan/kv/fdb/pages.h"

#include <algorithm>
#include <utility>

namespace divan::kv::fdb {
namespace {

constexpr std::size_t kMaxCount = 1 << 30;

int bounded(std::size_t count) { return static_cast<int>(std::min(count, kMaxCount)); }

}  // namespace

Pages::Pages(RawTransaction& tx, std::string begin, std::string end, const Wanted& wanted)
    : tx_(tx), begin_(std::move(begin)), end_(std::move(end)), wanted_(wanted), rows_left_(wanted.rows) {}

Future Pages::request() {
  const bool is_bounded = wanted_.rows != 0 || wanted_.bytes != 0;
  return tx_.get_range({.begin = begin_,
                        .end = end_,
                        .limit = bounded(rows_left_),
                        .target_bytes = bounded(wanted_.bytes),
                        .mode = is_bounded ? StreamingMode::want_all : StreamingMode::iterator,
                        .iteration = is_bounded ? 0 : ++iteration_,
                        .reverse = wanted_.reverse});
}

FdbError Pages::next(std::span<const FdbKeyValue>& rows) {
  rows = {};
  if (!more_) return 0;
  page_ = ahead_ ? std::exchange(ahead_, std::nullopt) : request();
  if (!page_->is_ready()) tx_.cluster().count_round_trip();
  if (const FdbError code = tx_.cluster().outcome_of(*page_); code != 0) return code;
  rows = tx_.rows_in(*page_, more_);
  if (rows.empty()) {
    more_ = false;
    return 0;
  }
  if (wanted_.rows != 0) rows = rows.first(std::min(rows_left_, rows.size()));
  const auto last = view(rows.back().key, rows.back().key_length);
  if (wanted_.reverse) {
    end_ = last;
  } else {
    begin_.assign(last).push_back('\0');
  }
  if (wanted_.rows != 0) {
    rows_left_ -= rows.size();
    if (rows_left_ == 0) more_ = false;
  }
  more_ = more_ && begin_ < end_;
  // A reader that needs a second page is likely to need more.
  if (more_ && wanted_.bytes == 0 && (wanted_.rows != 0 || iteration_ > 1)) ahead_ = request();
  return 0;
}

}  // namespace divan::kv::fdb
