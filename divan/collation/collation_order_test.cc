// The essential property of the encoding: bytes sort as CouchDB sorts the values. The oracle is
// collation_reference.h.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "divan/base/json.h"
#include "divan/collation/collation.h"
#include "divan/collation/reference.h"
#include "divan/collation/strings.h"

namespace divan::collation {
namespace {

rc::Gen<std::string> number() {
  const auto plain = rc::gen::map(rc::gen::inRange(-20, 20), [](int n) { return std::to_string(n); });
  const auto any_int =
      rc::gen::map(rc::gen::arbitrary<std::int64_t>(), [](auto n) { return std::to_string(n); });
  // Around powers of two, as integers and as doubles, whose orders must be consistent.
  const auto edge = rc::gen::map(
      rc::gen::tuple(rc::gen::inRange(50, 64), rc::gen::inRange(-4, 5), rc::gen::arbitrary<bool>(),
                     rc::gen::arbitrary<bool>()),
      [](const auto& parts) {
        const auto [bit, delta, negative, as_double] = parts;
        const std::uint64_t value = (std::uint64_t{1} << bit) + static_cast<std::uint64_t>(delta);
        return (negative ? "-" : "") + std::to_string(value) + (as_double ? ".0" : "");
      });
  const auto digits =
      rc::gen::map(rc::gen::pair(rc::gen::arbitrary<bool>(),
                                 rc::gen::container<std::string>(rc::gen::inRange<char>('0', '9' + 1))),
                   [](const auto& parts) { return (parts.first ? "-1" : "1") + parts.second; });
  const auto decimal = rc::gen::map(
      rc::gen::tuple(any_int, rc::gen::inRange(0, 1000), rc::gen::inRange(-330, 290)), [](const auto& parts) {
        const auto& [whole, fraction, exponent] = parts;
        return whole + "." + std::to_string(fraction) + "e" + std::to_string(exponent);
      });
  return rc::gen::oneOf(plain, any_int, edge, digits, decimal);
}

// Characters that collate in different ways: ignorable, case, accents that combine, contractions, expansions,
// other scripts, unassigned, beyond 16 bits.
rc::Gen<std::string> string() {
  const std::vector<std::string> kinds{
      "a",          "b",      "A",      "z",          "0",      "9",
      " ",          "-",      "~",      "_",          "\u200b", "\u200d",
      "\u0301",     "\u0323", "\u00e9", "\u00e6",     "\u00df", "\u0152",
      "\u0430",     "\u0e40", "\u0e01", "\u4e2d",     "\uac00", "\u1100",
      "\u1161",     "\u0627", "\ufff0", "\ufffe",     "\uffff", "\ufb01",
      "\U0001f4a9", "\u0378", "\u01c6", "\U00020000", "\u00ad", std::string(1, '\0')};
  const auto known = rc::gen::elementOf(kinds);
  const auto any = rc::gen::map(rc::gen::inRange<std::uint32_t>(1, 0x10ffff), [](std::uint32_t code) {
    if (code >= 0xd800 && code < 0xe000) code -= 0x800;
    char escaped[16];
    if (code < 0x10000) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", code);
    } else {
      std::snprintf(escaped, sizeof escaped, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
                    0xdc00 + (code & 0x3ff));
    }
    return json::unescape(escaped);
  });
  const auto characters = rc::gen::container<std::vector<std::string>>(
      rc::gen::weightedOneOf<std::string>({{5, known}, {1, any}}));
  return rc::gen::map(characters, [](const auto& all) {
    std::string text;
    for (const std::string& each : all) text += each;
    return json::quoted(text);
  });
}

std::string joined(const std::vector<std::string>& parts, char open, char close) {
  std::string text(1, open);
  for (const std::string& part : parts) {
    if (text.size() > 1) text += ',';
    text += part;
  }
  return text + close;
}

rc::Gen<std::string> value(int depth) {
  const auto scalar =
      rc::gen::oneOf(rc::gen::element<std::string>("null", "false", "true"), number(), string());
  if (depth == 0) return scalar;
  const auto few = [](const rc::Gen<std::string>& each) {
    return rc::gen::mapcat(rc::gen::inRange<std::size_t>(0, 4), [each](std::size_t size) {
      return rc::gen::container<std::vector<std::string>>(size, each);
    });
  };
  const auto inner = rc::gen::lazy([depth] { return value(depth - 1); });
  const auto member = rc::gen::map(rc::gen::pair(string(), inner),
                                   [](const auto& parts) { return parts.first + ":" + parts.second; });
  return rc::gen::oneOf(scalar,
                        rc::gen::map(few(inner), [](const auto& parts) { return joined(parts, '[', ']'); }),
                        rc::gen::map(few(member), [](const auto& parts) { return joined(parts, '{', '}'); }));
}

void expect_reference_order(const std::string& a, const std::string& b) {
  const std::string left = json::compact(a);
  const std::string right = json::compact(b);
  const int expected = reference::sign(reference::compare(left, right));
  RC_CLASSIFY(expected == 0, "equal");
  RC_ASSERT(reference::sign(encode_key(left).compare(encode_key(right))) == expected);
}

RC_GTEST_PROP(CollationOrder, numbers, ()) { expect_reference_order(*number(), *number()); }

RC_GTEST_PROP(CollationOrder, strings, ()) { expect_reference_order(*string(), *string()); }

RC_GTEST_PROP(CollationOrder, strings_with_a_common_beginning, ()) {
  const std::string start = *string();
  const auto prefixed = [&](const std::string& rest) {
    return start.substr(0, start.size() - 1) + rest.substr(1);
  };
  expect_reference_order(prefixed(*string()), prefixed(*string()));
}

RC_GTEST_PROP(CollationOrder, values, ()) { expect_reference_order(*value(3), *value(3)); }

RC_GTEST_PROP(CollationOrder, values_with_a_common_beginning, ()) {
  const std::string start = *value(1);
  const auto member = [&](const std::string& rest) { return "{\"k\":[" + start + "," + rest + "]}"; };
  expect_reference_order(member(*value(2)), member(*value(2)));
}

RC_GTEST_PROP(CollationOrder, no_encoding_is_a_prefix_of_another, ()) {
  for (const Collation collation : {Collation::unicode, Collation::raw}) {
    const std::string a = encode_key(json::compact(*value(2)), collation);
    const std::string b = encode_key(json::compact(*value(2)), collation);
    RC_ASSERT(a == b || (!a.starts_with(b) && !b.starts_with(a)));
    RC_ASSERT(a.front() == 6 || group_prefix(a + b, 1, collation) == a);
  }
}

RC_GTEST_PROP(CollationOrder, raw_strings_sort_by_their_bytes, ()) {
  const std::string a = *string();
  const std::string b = *string();
  const int expected = reference::sign(json::string_value(a)->compare(*json::string_value(b)));
  RC_ASSERT(reference::sign(encode_key(a, Collation::raw).compare(encode_key(b, Collation::raw))) ==
            expected);
}

RC_GTEST_PROP(CollationOrder, short_cut_for_plain_strings_gives_icus_bytes, ()) {
  const std::string text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcxyz0189-A")));
  std::string quick;
  std::string slow;
  StringCollator::of_this_thread().append_key(quick, text);
  StringCollator::of_this_thread().append_key_by_icu(slow, text);
  RC_ASSERT(quick == slow);
}

TEST(CollationOrder, short_cut_gives_icus_bytes_for_all_lengths_and_characters) {
  StringCollator& collator = StringCollator::of_this_thread();
  const std::string_view plain = "abcdefghijklmnopqrstuvwxyz0123456789";
  for (std::size_t length = 0; length < 120; ++length) {
    for (std::size_t i = 0; i < plain.size(); ++i) {
      std::string text(length, plain[i]);
      if (!text.empty()) text.back() = plain[(i * 7 + length) % plain.size()];
      std::string quick;
      std::string slow;
      collator.append_key(quick, text);
      collator.append_key_by_icu(slow, text);
      ASSERT_EQ(quick, slow) << text;
    }
  }
}

}  // namespace
}  // namespace divan::collation
