#include "divan/kv/model/serial.h"

#include <algorithm>

#include "divan/base/bytes.h"

namespace divan::kv::model {
namespace {

std::optional<std::string> value_of(const Rows& rows, const std::string& key) {
  const auto row = rows.find(key);
  return row == rows.end() ? std::nullopt : std::optional(row->second);
}

std::string scan(const Rows& rows, const Operation& operation) {
  const auto& options = operation.options;
  if (operation.begin > operation.end) return "inverted_range";
  std::vector<std::pair<std::string, std::string>> found(rows.lower_bound(operation.begin),
                                                         rows.lower_bound(operation.end));
  if (options.reverse) std::reverse(found.begin(), found.end());
  std::string answer;
  std::size_t count = 0, bytes = 0;
  for (const auto& [key, value] : found) {
    answer += to_hex(key) + "=" + to_hex(value) + " ";
    bytes += key.size() + value.size();
    if (++count == operation.visited) break;
    if (count == options.limit || (options.target_bytes != 0 && bytes >= options.target_bytes)) {
      return answer + "more";
    }
  }
  return answer + "end";
}

void put(Rows& rows, const std::string& key, const std::optional<std::string>& value) {
  rows.erase(key);
  if (value) rows.emplace(key, *value);
}

}  // namespace

std::string perform(Rows& rows, const Operation& operation) {
  const std::string& key = operation.begin;
  const std::string& end = operation.end;
  switch (operation.kind) {
    case Operation::Kind::get: return shown(value_of(rows, key));
    case Operation::Kind::get_many: {
      std::string answer;
      for (const auto& each : operation.keys) answer += shown(value_of(rows, each)) + " ";
      return answer;
    }
    case Operation::Kind::scan: return scan(rows, operation);
    case Operation::Kind::set: put(rows, key, operation.value); break;
    case Operation::Kind::clear: rows.erase(key); break;
    case Operation::Kind::atomic:
      put(rows, key, apply_atomic(operation.op, value_of(rows, key), operation.value));
      break;
    case Operation::Kind::clear_range:
      if (key > end) return "inverted_range";
      rows.erase(rows.lower_bound(key), rows.lower_bound(end));
      break;
    case Operation::Kind::read_conflict:
    case Operation::Kind::write_conflict:
      if (key > end) return "inverted_range";
      break;
    case Operation::Kind::stamped_key:
    case Operation::Kind::stamped_value: return "it has no version";
  }
  return "done";
}

std::string contents(const Rows& rows) {
  std::string all;
  for (const auto& [key, value] : rows) all += to_hex(key) + "=" + to_hex(value) + " ";
  return all;
}

}  // namespace divan::kv::model
