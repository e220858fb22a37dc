#include "divan/kv/embedded/write_map.h"

#include "divan/base/check.h"
#include "divan/kv/stamping.h"

namespace divan::kv::embedded {

PointWrite& WriteMap::point(std::string_view key) {
  const auto next = points_.lower_bound(key);
  if (next != points_.end() && next->first == key) return next->second;
  return add_point(next, key, {});
}

PointWrite& WriteMap::add_point(Points::iterator next, std::string_view key, PointWrite write) {
  ++changes_;
  return points_.emplace_hint(next, key, std::move(write))->second;
}

void WriteMap::set(std::string_view key, std::string_view value) {
  PointWrite& write = point(key);
  write.kind = PointWrite::Kind::set;
  write.value = value;
  write.operations.clear();
  bytes_ += key.size() + value.size();
}

void WriteMap::clear(std::string_view key) {
  PointWrite& write = point(key);
  write.kind = PointWrite::Kind::clear;
  write.value.clear();
  write.operations.clear();
  write.unreadable = false;
  bytes_ += key.size();
  if (unreadable_.covering(key) != unreadable_.end()) clear_stamped_keys(key, std::string(key) + '\0');
}

void WriteMap::clear_range(std::string_view begin, std::string_view end) {
  if (begin >= end) return;
  bytes_ += begin.size() + end.size();
  ++changes_;
  points_.erase(points_.lower_bound(begin), points_.lower_bound(end));
  clear_stamped_keys(begin, end);
  cleared_.add(begin, end);
}

void WriteMap::atomic(AtomicOp op, std::string_view key, std::string_view operand) {
  bytes_ += key.size() + operand.size();
  const auto next = points_.lower_bound(key);
  const bool is_new = next == points_.end() || next->first != key;
  const bool may_have_row = is_new && !is_cleared(key);
  if (may_have_row) has_atomics_ = true;
  const auto kind = may_have_row ? PointWrite::Kind::atomic : PointWrite::Kind::clear;
  PointWrite& write = is_new ? add_point(next, key, {.kind = kind}) : next->second;
  if (write.kind == PointWrite::Kind::atomic || write.kind == PointWrite::Kind::stamped_value) {
    // Counters are added to over and over in one transaction: one operation is enough.
    if (op == AtomicOp::add && !write.operations.empty() && write.operations.back().op == AtomicOp::add &&
        write.operations.back().operand.size() == operand.size()) {
      write.operations.back().operand = *apply_atomic(op, write.operations.back().operand, operand);
    } else {
      write.operations.push_back({op, std::string(operand)});
    }
    return;
  }
  const auto present = write.kind == PointWrite::Kind::set ? std::optional(write.value) : std::nullopt;
  auto result = apply_atomic(op, present, operand);
  write.kind = result ? PointWrite::Kind::set : PointWrite::Kind::clear;
  write.value = std::move(result).value_or(std::string());
}

void WriteMap::set_stamped_value(std::string_view key, std::string_view value, std::uint32_t stamp_offset) {
  set(key, value);
  DIVAN_CHECK(stamp_offset + kVersionstampBytes <= value.size(), "a versionstamp at {} of {} bytes",
              stamp_offset, value.size());
  PointWrite& write = point(key);
  write.kind = PointWrite::Kind::stamped_value;
  write.stamp_offset = stamp_offset;
  write.unreadable = true;
}

void WriteMap::add_stamped_key(std::string_view key, std::uint32_t stamp_offset, std::string_view value,
                               Version read_version) {
  bytes_ += key.size() + value.size();
  auto possible = possible_keys(key, stamp_offset, read_version);
  unreadable_.add(possible.begin, possible.end);
  stamped_keys_.push_back({std::string(key), stamp_offset, std::string(value), std::move(possible), {}});
}

void WriteMap::clear_stamped_keys(std::string_view begin, std::string_view end) {
  const auto next = unreadable_.first_after(begin);
  if (next == unreadable_.end() || next->first >= end) return;
  unreadable_.remove(begin, end);
  std::erase_if(stamped_keys_, [&](const StampedKey& stamped) {
    return begin <= stamped.possible.begin && stamped.possible.end <= end;
  });
  for (auto& stamped : stamped_keys_) {
    if (stamped.possible.begin < end && begin < stamped.possible.end) {
      stamped.cleared.push_back({std::string(begin), std::string(end)});
    }
  }
}

std::optional<std::string> value_after(const PointWrite& point, const std::optional<std::string>& stored) {
  if (point.unreadable) throw Error(ErrorCode::accessed_unreadable);
  if (point.kind == PointWrite::Kind::set) return point.value;
  if (point.kind == PointWrite::Kind::clear) return std::nullopt;
  std::optional<std::string> value = stored;
  for (const auto& operation : point.operations) value = apply_atomic(operation.op, value, operation.operand);
  return value;
}

}  // namespace divan::kv::embedded
