#include "divan/kv/model/program.h"

#include <fmt/format.h>

#include <cstdlib>

#include "divan/base/bytes.h"

namespace divan::kv::model {
namespace {

KeyRange random_range(Rng& rng) {
  KeyRange range = {random_key(rng), rng.below(8) == 0 ? "\xff" : random_key(rng)};
  // Now and then the wrong way round.
  if (range.begin > range.end && rng.below(20) != 0) std::swap(range.begin, range.end);
  return range;
}

std::string random_value(Rng& rng) {
  std::string value(rng.below(4), '\0');
  for (char& byte : value) byte = static_cast<char>(rng.below(3) == 0 ? 255 : rng.below(3));
  return value;
}

// A stamp between two short strings, among the other keys.
std::string stampable(Rng& rng, const std::string& before) {
  const std::string after = rng.below(2) == 0 ? "" : "x";
  const std::string offset = {static_cast<char>(before.size()), '\0', '\0', '\0'};
  return before + std::string(10, '\0') + after + offset;
}

std::string do_scan(Transaction& tx, const Operation& operation) {
  std::string answer;
  std::size_t rows = 0;
  const bool more = tx.scan({operation.begin, operation.end}, operation.options,
                            [&](std::string_view key, std::string_view value) {
                              answer += to_hex(key) + "=" + to_hex(value) + " ";
                              return ++rows != operation.visited;
                            });
  return answer + (more ? "more" : "end");
}

std::string read(Transaction& tx, const Operation& operation) {
  const auto isolation = operation.options.isolation;
  switch (operation.kind) {
    case Operation::Kind::get: return shown(tx.get(operation.begin, isolation));
    case Operation::Kind::get_many: {
      std::string answer;
      for (const auto& value : tx.get_many(operation.keys, isolation)) answer += shown(value) + " ";
      return answer;
    }
    default: return do_scan(tx, operation);
  }
}

void write(Transaction& tx, const Operation& operation) {
  const std::string& key = operation.begin;
  switch (operation.kind) {
    case Operation::Kind::set: return tx.set(key, operation.value);
    case Operation::Kind::clear: return tx.clear(key);
    case Operation::Kind::clear_range: return tx.clear_range(key, operation.end);
    case Operation::Kind::atomic: return tx.atomic(operation.op, key, operation.value);
    case Operation::Kind::stamped_key: return tx.set_versionstamped_key(key, operation.value);
    case Operation::Kind::stamped_value: return tx.set_versionstamped_value(key, operation.value);
    case Operation::Kind::read_conflict: return tx.add_read_conflict({key, operation.end});
    default: return tx.add_write_conflict({key, operation.end});
  }
}

}  // namespace

std::string random_key(Rng& rng) {
  // The last but one is the last key that "a" and a versionstamp may become.
  static const std::vector<std::string> kKeys = {
      "",  "a", std::string("a\0", 2),         "ab",  "b", "c", "ca", "d", "e", "f", "fa",
      "g", "h", "a" + std::string(10, '\xff'), "\xfe"};
  return kKeys[rng.below(kKeys.size())];
}

std::string shown(const std::optional<std::string>& value) {
  return value ? "'" + to_hex(*value) + "'" : "none";
}

Operation random_operation(Rng& rng) {
  using Kind = Operation::Kind;
  // Reads and plain writes more often than the rest.
  static const std::vector<Kind> kKinds = {
      Kind::get,         Kind::get,          Kind::get_many, Kind::scan,          Kind::scan,
      Kind::scan,        Kind::set,          Kind::set,      Kind::set,           Kind::clear,
      Kind::clear_range, Kind::atomic,       Kind::atomic,   Kind::read_conflict, Kind::write_conflict,
      Kind::stamped_key, Kind::stamped_value};
  Operation operation;
  operation.kind = kKinds[rng.below(kKinds.size())];
  for (std::size_t i = 0; i < 3; ++i) operation.keys.push_back(random_key(rng));
  const auto range = random_range(rng);
  operation.begin = range.begin;
  operation.end = range.end;
  if (rng.below(2) == 0) operation.options.limit = rng.below(4);
  if (rng.below(4) == 0) operation.options.target_bytes = 1 + rng.below(6);
  if (rng.below(6) == 0) operation.visited = 1 + rng.below(3);
  operation.options.reverse = rng.below(2) == 0;
  if (rng.below(4) == 0) operation.options.isolation = Isolation::snapshot;
  operation.value = random_value(rng);
  operation.op = static_cast<AtomicOp>(rng.below(6));
  if (operation.kind == Kind::stamped_key) operation.begin = stampable(rng, rng.below(2) == 0 ? "a" : "f");
  if (operation.kind == Kind::stamped_value) operation.value = stampable(rng, operation.value);
  return operation;
}

Seeds seeds(std::uint64_t usual, std::uint64_t many, std::uint64_t again) {
  if (const char* const chosen = std::getenv("DIVAN_SEED")) {
    return {std::strtoull(chosen, nullptr, 10), again, true};
  }
  const char* const is_long = std::getenv("DIVAN_LONG");
  return {SystemRng().next() >> 24, is_long != nullptr && *is_long == '1' ? many : usual};
}

std::string perform(Transaction& tx, const Operation& operation) {
  return answer_of([&]() -> std::string {
    if (operation.is_read()) return read(tx, operation);
    write(tx, operation);
    return "done";
  });
}

std::string commit(Transaction& tx) {
  return answer_of([&] {
    tx.commit();
    return std::string("committed");
  });
}

std::string describe(const Operation& operation) {
  static const char* const kNames[] = {"get",           "get_many",      "scan",          "set",
                                       "clear",         "clear_range",   "atomic",        "stamped_key",
                                       "stamped_value", "read_conflict", "write_conflict"};
  std::string keys;
  for (const auto& key : operation.keys) keys += to_hex(key) + " ";
  return fmt::format("{} {} {} keys [{}] limit {} bytes {} visited {}{}{} value {} op {}",
                     kNames[static_cast<std::size_t>(operation.kind)], to_hex(operation.begin),
                     to_hex(operation.end), keys, operation.options.limit, operation.options.target_bytes,
                     operation.visited, operation.options.reverse ? " reverse" : "",
                     operation.options.isolation == Isolation::snapshot ? " snapshot" : "",
                     to_hex(operation.value), static_cast<int>(operation.op));
}

std::string contents(Database& database) {
  std::string rows;
  database.dump([&](std::string_view key, std::string_view value) {
    rows += to_hex(key) + "=" + to_hex(value) + " ";
    return true;
  });
  return rows;
}

}  // namespace divan::kv::model
