#include "divan/kv/embedded/write_map.h"

namespace divan::kv::embedded {
namespace {

constexpr std::size_t kStampBytes = 10;

// Whether the key lies in [begin, end) whatever the commit fills in.
bool lies_within(const StampedKey& stamped, std::string_view begin, std::string_view end) {
  std::string key = stamped.key;
  key.replace(stamped.stamp_offset, kStampBytes, kStampBytes, '\0');
  if (key < begin) return false;
  key.replace(stamped.stamp_offset, kStampBytes, kStampBytes, '\xff');
  return key < end;
}

}  // namespace

PointWrite& WriteMap::point(std::string_view key) {
  const auto next = points_.lower_bound(key);
  if (next != points_.end() && next->first == key) return next->second;
  return points_.emplace_hint(next, key, PointWrite{})->second;
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
  bytes_ += key.size();
}

void WriteMap::clear_range(std::string_view begin, std::string_view end) {
  bytes_ += begin.size() + end.size();
  if (begin >= end) return;
  points_.erase(points_.lower_bound(begin), points_.lower_bound(end));
  std::erase_if(stamped_keys_, [&](const StampedKey& stamped) { return lies_within(stamped, begin, end); });
  std::string first(begin);
  std::string last(end);
  auto it = ranges_.upper_bound(first);
  if (it != ranges_.begin() && std::prev(it)->second >= first) --it;
  while (it != ranges_.end() && it->first <= last) {
    first = std::min(first, it->first);
    last = std::max(last, it->second);
    it = ranges_.erase(it);
  }
  ranges_.emplace(std::move(first), std::move(last));
}

void WriteMap::atomic(AtomicOp op, std::string_view key, std::string_view operand) {
  bytes_ += key.size() + operand.size();
  auto next = points_.lower_bound(key);
  if (next == points_.end() || next->first != key) {
    if (cleared_until(key) != nullptr) {
      next = points_.emplace_hint(next, key, PointWrite{});
    } else {
      PointWrite fresh;
      fresh.kind = PointWrite::Kind::atomic;
      has_atomics_ = true;
      next = points_.emplace_hint(next, key, std::move(fresh));
    }
  }
  PointWrite& write = next->second;
  if (write.kind == PointWrite::Kind::stamped_value) {
    throw Error(ErrorCode::client_invalid_operation, "Atomic operation on a versionstamped value.");
  }
  if (write.kind == PointWrite::Kind::atomic) {
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
  PointWrite& write = point(key);
  write.kind = PointWrite::Kind::stamped_value;
  write.stamp_offset = stamp_offset;
}

void WriteMap::add_stamped_key(std::string_view key, std::uint32_t stamp_offset, std::string_view value) {
  stamped_keys_.push_back({std::string(key), stamp_offset, std::string(value)});
  bytes_ += key.size() + value.size();
}

const std::string* WriteMap::cleared_until(std::string_view key) const {
  if (ranges_.empty()) return nullptr;
  const auto it = ranges_.upper_bound(key);
  if (it == ranges_.begin() || std::prev(it)->second <= key) return nullptr;
  return &std::prev(it)->second;
}

const std::string* WriteMap::cleared_from(std::string_view key) const {
  if (ranges_.empty()) return nullptr;
  const auto it = ranges_.lower_bound(key);
  if (it == ranges_.begin() || std::prev(it)->second < key) return nullptr;
  return &std::prev(it)->first;
}

std::optional<std::string> value_after(const PointWrite& point, const std::optional<std::string>& stored) {
  switch (point.kind) {
    case PointWrite::Kind::set: return point.value;
    case PointWrite::Kind::clear: return std::nullopt;
    case PointWrite::Kind::stamped_value: throw Error(ErrorCode::accessed_unreadable);
    case PointWrite::Kind::atomic: break;
  }
  std::optional<std::string> value = stored;
  for (const auto& operation : point.operations) value = apply_atomic(operation.op, value, operation.operand);
  return value;
}

}  // namespace divan::kv::embedded
