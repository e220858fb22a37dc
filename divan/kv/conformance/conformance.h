// What the files of the suite share. Each test has a store of each engine to itself.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "divan/kv/conformance/engines.h"

namespace divan::kv {

inline void PrintTo(ErrorCode code, std::ostream* out) { *out << Error(code).name(); }

}  // namespace divan::kv

namespace divan::kv::conformance {

/// What a test does in a transaction.
using Step = std::function<void(Transaction&)>;

inline Step writes(const std::string& key) {
  return [key](Transaction& tx) { tx.set(key, "other"); };
}

#define DIVAN_NEEDS_INJECTED_TIME()                                             \
  do {                                                                          \
    if (!GetParam().time_is_injected) { GTEST_SKIP() << "waits for no clock"; } \
  } while (false)

class Conformance : public testing::TestWithParam<Engine> {
 protected:
  static constexpr std::size_t kMaxWatches = 8;

  Conformance() : store_(GetParam().make(clock_, kMaxWatches)), db(store_->database()) {}

  SystemClock clock_;
  std::unique_ptr<TestStore> store_;

  // For the tests.

  Database& db;

  std::string get(std::string_view key) {
    return db.run([&](Transaction& tx) { return tx.get(key).value_or("(none)"); });
  }
  void set(std::string_view key, std::string_view value) {
    db.run([&](Transaction& tx) { tx.set(key, value); });
  }
  /// These keys, each with the value "v" and itself, and nothing else.
  void set_all(std::string_view keys) {
    db.run([&](Transaction& tx) {
      tx.clear_range("", "\xff");
      for (const char key : keys) tx.set(std::string(1, key), std::string("v") + key);
    });
  }
  std::string stored(const KeyRange& range = {"", "\xff"});
  MonotonicTime soon() const { return clock_.now() + std::chrono::seconds(60); }

  /// Returns true if a transaction that runs `first` and writes elsewhere commits although `other` is
  /// committed meanwhile.
  bool survives(const Step& first, const Step& other);
  /// The same over set_all(keys).
  bool survives_over(std::string_view keys, const Step& first, const Step& other) {
    set_all(keys);
    return survives(first, other);
  }
};

/// "a=1 b=2 "
inline std::string text(const std::vector<KeyValue>& rows) {
  std::string out;
  for (const auto& row : rows) out += row.key + "=" + row.value + " ";
  return out;
}
inline std::string rows(Transaction& tx, const KeyRange& range, const RangeOptions& options = {}) {
  return text(tx.get_range(range, options).rows);
}

inline std::string Conformance::stored(const KeyRange& range) {
  return db.run([&](Transaction& tx) { return rows(tx, range); });
}

inline bool Conformance::survives(const std::function<void(Transaction&)>& first,
                                  const std::function<void(Transaction&)>& other) {
  const auto tx = db.begin();
  first(*tx);
  tx->set("elsewhere", "x");
  db.run(other);
  try {
    tx->commit();
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_committed);
    return false;
  }
}

/// The code of the error that `fn` throws.
inline std::optional<ErrorCode> code_of(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) { return error.code(); }
  return std::nullopt;
}

/// A key or value with room for a versionstamp between the two, and the offset of it.
inline std::string stampable(const std::string& before, const std::string& after = "") {
  std::string offset;
  for (unsigned i = 0; i < 4; ++i) offset += static_cast<char>(before.size() >> (8 * i));
  return before + std::string(10, '\xff') + after + offset;
}

/// Expects that a transaction which was committed, or cannot be tried again, refuses all other calls.
inline void expect_only_a_reset_is_left(Transaction& tx) {
  const std::vector<std::string> keys = {"b"};
  const KeyRange range = {"a", "b"};
  const std::vector<std::function<void()>> calls = {
      [&] { tx.get("a"); },
      [&] { tx.get("a", Isolation::snapshot); },
      [&] { tx.get_many(keys); },
      [&] { tx.get_range(range); },
      [&] { tx.set("a", "1"); },
      [&] { tx.clear("a"); },
      [&] { tx.clear_range(range); },
      [&] { tx.add("a", 1); },
      [&] { tx.set_versionstamped_key(stampable("a"), "1"); },
      [&] { tx.set_versionstamped_value("a", stampable("a")); },
      [&] { tx.watch("a"); },
      [&] { tx.add_read_conflict(range); },
      [&] { tx.add_write_conflict(range); },
      [&] { tx.commit(); },
  };
  for (const auto& call : calls) {
    EXPECT_EQ(code_of(call), ErrorCode::used_during_commit) << "call " << &call - calls.data();
  }
}

}  // namespace divan::kv::conformance
