// Every two kinds of writes to one key, one after the other, and every way to read the result.
#include <fmt/core.h>

#include <algorithm>

#include "divan/kv/conformance/conformance.h"

namespace divan::kv::conformance {
namespace {

// What "k" holds, among "i" and "m", and what else is there.
struct Contents {
  std::optional<std::string> value;
  bool unreadable = false;   // it holds a versionstamp that is not known yet
  bool stamped_key = false;  // so does a key that begins with "k"
};

struct Write {
  const char* name;
  std::function<void(Transaction&)> make;
  // What it makes of them in a commit with this versionstamp.
  std::function<void(Contents&, const std::string& stamp)> apply;
};

// Numbers of two bytes.
std::string two_bytes(unsigned number) {
  return {static_cast<char>(number & 0xff), static_cast<char>(number >> 8 & 0xff)};
}
unsigned number_of(const std::optional<std::string>& value) {
  std::string bytes = value.value_or("");
  bytes.resize(2, '\0');
  return static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
}

Write atomic(const char* name, AtomicOp op, const std::string& operand,
             const std::function<std::optional<std::string>(const std::optional<std::string>&)>& result) {
  return {name, [=](Transaction& tx) { tx.atomic(op, "k", operand); },
          [=](Contents& contents, const std::string&) { contents.value = result(contents.value); }};
}

std::vector<Write> kinds_of_writes() {
  using Value = std::optional<std::string>;
  const std::string plain = two_bytes(0x0180), small = two_bytes(0x0102), large = two_bytes(0x8001);
  const std::string low("\x80\x00", 2), high = "\xf0";
  return {
      {"set", [=](Transaction& tx) { tx.set("k", plain); },
       [=](Contents& contents, const std::string&) { contents.value = plain; }},
      {"clear", [](Transaction& tx) { tx.clear("k"); },
       [](Contents& contents, const std::string&) { contents.value.reset(), contents.unreadable = false; }},
      {"clear_range", [](Transaction& tx) { tx.clear_range("j", "l"); },
       [](Contents& contents, const std::string&) { contents = {}; }},
      {"versionstamped value",
       [](Transaction& tx) { tx.set_versionstamped_value("k", stampable("", "\x81")); },
       [](Contents& contents, const std::string& stamp) {
         contents.value = stamp + "\x81", contents.unreadable = true;
       }},
      {"versionstamped key", [](Transaction& tx) { tx.set_versionstamped_key(stampable("k"), "s"); },
       [](Contents& contents, const std::string&) { contents.stamped_key = true; }},
      atomic("add", AtomicOp::add, large,
             [=](const Value& value) { return two_bytes(number_of(value) + number_of(large)); }),
      atomic("min", AtomicOp::min, small,
             [=](const Value& value) {
               return value ? two_bytes(std::min(number_of(value), number_of(small))) : small;
             }),
      atomic("max", AtomicOp::max, large,
             [=](const Value& value) { return two_bytes(std::max(number_of(value), number_of(large))); }),
      atomic("byte_min", AtomicOp::byte_min, low,
             [=](const Value& value) { return std::min(value.value_or(low), low); }),
      atomic("byte_max", AtomicOp::byte_max, high,
             [=](const Value& value) { return std::max(value.value_or(high), high); }),
      atomic("compare_and_clear", AtomicOp::compare_and_clear, plain,
             [=](const Value& value) { return value == plain ? std::nullopt : value; }),
  };
}

// "i=i k=... m=m " or the other way round.
std::string text_of(const Contents& contents, const std::string& stamp, bool reverse) {
  std::vector<KeyValue> all = {{"i", "i"}};
  if (contents.value) all.push_back({"k", *contents.value});
  if (contents.stamped_key) all.push_back({"k" + stamp, "s"});
  all.push_back({"m", "m"});
  if (reverse) std::reverse(all.begin(), all.end());
  return text(all);
}

// What `fn` returns, or "unreadable".
std::string read(const std::function<std::string()>& fn) {
  std::string answer;
  const auto code = code_of([&] { answer = fn(); });
  EXPECT_EQ(code.value_or(ErrorCode::accessed_unreadable), ErrorCode::accessed_unreadable);
  return code ? "unreadable" : answer;
}

// Expects that a transaction which has made the writes, or began after their commit, reads `contents`.
void expect_reads(Transaction& tx, const Contents& contents, const std::string& stamp, bool committed) {
  const bool unreadable = contents.unreadable && !committed;
  const bool stamped_key = contents.stamped_key && !committed;
  const std::string value = unreadable ? "unreadable" : contents.value.value_or("(none)");
  const std::vector<std::string> keys = {"k"};
  const KeyRange all = {"", "\xff"}, just = {"k", std::string("k\0", 2)};
  for (const auto isolation : {Isolation::serializable, Isolation::snapshot}) {
    EXPECT_EQ(read([&] { return tx.get("k", isolation).value_or("(none)"); }), value);
    EXPECT_EQ(read([&] { return tx.get_many(keys, isolation).at(0).value_or("(none)"); }), value);
    // The row next to "i" and the one next to "m".
    const auto next = [&](const KeyRange& range, bool reverse) {
      return read([&] { return rows(tx, range, {.limit = 1, .reverse = reverse, .isolation = isolation}); });
    };
    const std::string stamped_row = "k" + stamp + "=s ", value_row = "k=" + value + " ";
    const std::string last = contents.stamped_key ? stamped_row : contents.value ? value_row : "i=i ";
    const std::string first = contents.value ? value_row : contents.stamped_key ? stamped_row : "m=m ";
    const bool forward_fails = unreadable || (stamped_key && !contents.value);
    EXPECT_EQ(next({"j", "z"}, false), forward_fails ? "unreadable" : first);
    EXPECT_EQ(next({"", "m"}, true), unreadable || stamped_key ? "unreadable" : last);
    for (const bool reverse : {false, true}) {
      RangeOptions options = {.reverse = reverse, .isolation = isolation};
      EXPECT_EQ(read([&] { return rows(tx, all, options); }),
                unreadable || stamped_key ? "unreadable" : text_of(contents, stamp, reverse));
      EXPECT_EQ(read([&] { return rows(tx, just, options); }), unreadable       ? "unreadable"
                                                               : contents.value ? "k=" + value + " "
                                                                                : "");
      options.limit = 1;
      EXPECT_EQ(rows(tx, all, options), reverse ? "m=m " : "i=i ");
    }
  }
}

TEST_P(Conformance, EveryPairOfWritesToAKey) {
  const auto all = kinds_of_writes();
  const std::vector<std::optional<std::string>> stored_before = {std::nullopt, "\x7f",
                                                                 two_bytes(0x0180) + "z"};
  for (const auto& before : stored_before) {
    for (const auto& first : all) {
      for (const auto& second : all) {
        SCOPED_TRACE(fmt::format("{} then {} over {} bytes", first.name, second.name,
                                 before ? std::to_string(before->size()) : "no"));
        // With reads after each write, and without: an engine may cache what was read.
        for (const bool looks : {true, false}) {
          if (!looks && !before) continue;
          db.run([&](Transaction& tx) {
            tx.clear_range("", "\xff");
            tx.set("i", "i"), tx.set("m", "m");
            if (before) tx.set("k", *before);
          });
          const auto tx = db.begin();
          Contents contents = {before};
          first.make(*tx), first.apply(contents, std::string(10, '\0'));
          if (looks) expect_reads(*tx, contents, "", false);
          second.make(*tx), second.apply(contents, std::string(10, '\0'));
          if (looks) expect_reads(*tx, contents, "", false);
          tx->commit();
          contents = {before};
          first.apply(contents, tx->versionstamp()), second.apply(contents, tx->versionstamp());
          expect_reads(*db.begin(), contents, tx->versionstamp(), true);
          if (HasFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace divan::kv::conformance
