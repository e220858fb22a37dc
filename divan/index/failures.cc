#include "divan/index/failures.h"

#include <algorithm>
#include <chrono>

#include "divan/base/bytes.h"

namespace divan::index {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause = std::chrono::seconds(5);
constexpr milliseconds kLongestPause = std::chrono::minutes(1);
constexpr milliseconds kLongestPauseOfFunctions = std::chrono::hours(1);
constexpr std::int64_t kMaxDoublings = 16;
constexpr std::size_t kMaxErrorBytes = 2000;

}  // namespace

std::int64_t BuildFailures::retry_at() const {
  const auto doublings = std::clamp<std::int64_t>(count - 1, 0, kMaxDoublings);
  const auto longest = by_function ? kLongestPauseOfFunctions : kLongestPause;
  return last_at + std::min(longest, kFirstPause * (std::int64_t{1} << doublings)).count();
}

std::optional<BuildFailures> read_failures(kv::Transaction& tx, const IndexKeys& keys,
                                           kv::Isolation isolation) {
  const auto row = tx.get(keys.record(IndexKeys::Record::failures), isolation);
  if (!row) return std::nullopt;
  kv::tuple::Reader reader(*row);
  const auto count = reader.take_int();
  const auto last_at = reader.take_int();
  const auto by_function = reader.take_int();
  auto error = reader.take_string();
  if (!count || !last_at || !by_function || !error)
    throw internal_error("The record of an index's failed builds in the store is damaged.");
  return BuildFailures{*count, *last_at, *by_function != 0, *std::move(error)};
}

void write_failures(kv::Transaction& tx, const IndexKeys& keys, const BuildFailures& failures) {
  std::string value;
  kv::tuple::Packer(value)
      .integer(failures.count)
      .integer(failures.last_at)
      .integer(failures.by_function ? 1 : 0)
      .string(is_utf8(failures.error) ? utf8_prefix(failures.error, kMaxErrorBytes) : "");
  tx.set(keys.record(IndexKeys::Record::failures), value);
}

void clear_failures(kv::Transaction& tx, const IndexKeys& keys) {
  tx.clear(keys.record(IndexKeys::Record::failures));
}

}  // namespace divan::index
