// The point of the encoding: packed bytes sort as the tuples do. A slow comparison of values, written from
// the specification, is the reference.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/kv/tuple.h"

namespace divan::kv::tuple {

void showValue(const Element& element, std::ostream& out) { out << to_string(Tuple(1, element)); }

namespace {

using divan::Error;  // not kv::Error
using Order = std::strong_ordering;

// Sign and magnitude without leading zeros.
BigInteger as_big(const Element& element) {
  std::string key;
  if (const auto* small = std::get_if<std::int64_t>(&element)) {
    const auto bits = static_cast<std::uint64_t>(*small);
    append_u64(key, *small < 0 ? ~bits + 1 : bits);
    key.erase(0, key.find_first_not_of('\0'));
    return {*small < 0, key};
  }
  if (const auto* large = std::get_if<std::uint64_t>(&element)) {
    append_u64(key, *large);
    key.erase(0, key.find_first_not_of('\0'));
    return {false, key};
  }
  BigInteger big = std::get<BigInteger>(element);
  big.magnitude.erase(0, big.magnitude.find_first_not_of('\0'));
  if (big.magnitude.empty()) big.negative = false;
  return big;
}

Order compare_integers(const BigInteger& a, const BigInteger& b) {
  if (a.negative != b.negative) return a.negative ? Order::less : Order::greater;
  Order by_magnitude = a.magnitude.size() <=> b.magnitude.size();
  if (by_magnitude == 0) by_magnitude = a.magnitude.compare(b.magnitude) <=> 0;
  return a.negative ? 0 <=> by_magnitude : by_magnitude;
}

template <class Float>
Order compare_floats(Float a, Float b) {
  const auto rank = [](Float f) { return std::isnan(f) ? (std::signbit(f) ? -1 : 1) : 0; };
  if (rank(a) != rank(b)) return rank(a) <=> rank(b);
  if (rank(a) == 0) {
    if (a < b) return Order::less;
    if (a > b) return Order::greater;
    return std::signbit(b) <=> std::signbit(a);  // -0 < 0
  }
  using Bits = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;
  const Order by_bits = std::bit_cast<Bits>(a) <=> std::bit_cast<Bits>(b);
  return rank(a) < 0 ? 0 <=> by_bits : by_bits;
}

Order compare(const Tuple& a, const Tuple& b);

int type_rank(const Element& element) {
  // As the variant's alternatives: null, bytes, string, tuple, three integers, float, double, bool, uuid,
  // stamp.
  constexpr int kRanks[] = {0, 1, 2, 3, 4, 4, 4, 5, 6, 7, 8, 9};
  return kRanks[element.index()];
}

Order compare(const Element& a, const Element& b) {
  if (type_rank(a) != type_rank(b)) return type_rank(a) <=> type_rank(b);
  switch (type_rank(a)) {
    case 1: return std::get<Bytes>(a).value.compare(std::get<Bytes>(b).value) <=> 0;
    case 2: return std::get<String>(a).value.compare(std::get<String>(b).value) <=> 0;
    case 3: return compare(std::get<Tuple>(a), std::get<Tuple>(b));
    case 4: return compare_integers(as_big(a), as_big(b));
    case 5: return compare_floats(std::get<float>(a), std::get<float>(b));
    case 6: return compare_floats(std::get<double>(a), std::get<double>(b));
    case 7: return std::get<bool>(a) <=> std::get<bool>(b);
    case 8: return std::get<Uuid>(a) <=> std::get<Uuid>(b);
    case 9: return std::get<Versionstamp>(a) <=> std::get<Versionstamp>(b);
    default: return Order::equal;
  }
}

Order compare(const Tuple& a, const Tuple& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const Order order = compare(a[i], b[i]);
    if (order != 0) return order;
  }
  return a.size() <=> b.size();
}

rc::Gen<std::string> nasty_bytes() {
  const auto byte = rc::gen::element<char>('\0', '\0', '\1', 'a', '7', '\xfe', '\xff', '\xff');
  return rc::gen::oneOf(rc::gen::container<std::string>(byte), rc::gen::arbitrary<std::string>());
}

rc::Gen<std::string> nasty_text() {
  using namespace std::string_literals;
  const auto piece = rc::gen::element("\0"s, "\1"s, "a"s, "b"s, "\u00ff"s, "\uffff"s, "\U0001f4a9"s);
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const auto& pieces) {
    std::string text;
    for (const std::string& each : pieces) text += each;
    return text;
  });
}

rc::Gen<Element> integer() {
  const auto near_power = rc::gen::map(
      rc::gen::tuple(rc::gen::inRange(0, 64), rc::gen::inRange(-2, 3), rc::gen::arbitrary<bool>()),
      [](const auto& parts) -> Element {
        const auto [bit, delta, as_negative] = parts;
        const std::uint64_t bits = (std::uint64_t{1} << bit) + static_cast<std::uint64_t>(delta);
        if (as_negative) return static_cast<std::int64_t>(~bits + 1);
        return bits;
      });
  const auto big = rc::gen::map(rc::gen::pair(rc::gen::arbitrary<bool>(), nasty_bytes()),
                                [](const auto& parts) -> Element {
                                  return BigInteger{parts.first, parts.second.substr(0, 255)};
                                });
  return rc::gen::oneOf(near_power, big);
}

template <class Float, class Bits>
rc::Gen<Element> floating() {
  return rc::gen::oneOf(
      rc::gen::map(rc::gen::arbitrary<Bits>(),
                   [](Bits bits) -> Element { return std::bit_cast<Float>(bits); }),
      rc::gen::map(rc::gen::element(-1, 0, 1), [](int n) -> Element { return static_cast<Float>(n); }),
      rc::gen::element<Element>(
          -Float{0}, std::numeric_limits<Float>::infinity(), -std::numeric_limits<Float>::infinity(),
          std::numeric_limits<Float>::quiet_NaN(), -std::numeric_limits<Float>::quiet_NaN()));
}

rc::Gen<Tuple> tuple_of(int depth);

rc::Gen<Element> element(int depth) {
  std::vector<rc::Gen<Element>> kinds{
      rc::gen::just(Element(Null())),
      rc::gen::map(nasty_bytes(), [](const std::string& value) -> Element { return Bytes{value}; }),
      rc::gen::map(nasty_text(), [](const std::string& value) -> Element { return String{value}; }),
      integer(),
      floating<float, std::uint32_t>(),
      floating<double, std::uint64_t>(),
      rc::gen::map(rc::gen::arbitrary<bool>(), [](bool value) -> Element { return value; }),
      rc::gen::map(rc::gen::arbitrary<std::array<unsigned char, 16>>(),
                   [](const auto& bytes) -> Element { return Uuid{bytes}; }),
      rc::gen::map(rc::gen::arbitrary<std::uint16_t>(),
                   [](std::uint16_t user) -> Element {
                     return Versionstamp::complete(std::string(9, '\0') + static_cast<char>(user % 3), user);
                   }),
  };
  if (depth > 0) {
    kinds.push_back(rc::gen::map(tuple_of(depth - 1), [](Tuple nested) -> Element { return nested; }));
  }
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(0, kinds.size()),
                         [kinds](std::size_t kind) { return kinds[kind]; });
}

rc::Gen<Tuple> tuple_of(int depth) {
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(0, 5), [depth](std::size_t size) {
    return rc::gen::container<Tuple>(size, element(depth));
  });
}

// Two tuples that often share a beginning, since comparing them tells more.
rc::Gen<std::pair<Tuple, Tuple>> two_tuples() {
  return rc::gen::map(rc::gen::tuple(tuple_of(2), tuple_of(2), tuple_of(2)), [](const auto& parts) {
    const auto& [start, left, right] = parts;
    std::pair<Tuple, Tuple> both(start, start);
    both.first.insert(both.first.end(), left.begin(), left.end());
    both.second.insert(both.second.end(), right.begin(), right.end());
    return both;
  });
}

RC_GTEST_PROP(TupleOrder, packed_bytes_sort_as_the_tuples, ()) {
  const auto [a, b] = *two_tuples();
  const Order by_bytes = pack(a).compare(pack(b)) <=> 0;
  RC_CLASSIFY(by_bytes == 0, "equal");
  RC_ASSERT((by_bytes == compare(a, b)));
}

RC_GTEST_PROP(TupleOrder, nested_tuples_sort_as_tuples, ()) {
  const auto [a, b] = *two_tuples();
  const Order by_bytes = pack({Element(a), 1}).compare(pack({Element(b), 1})) <=> 0;
  RC_ASSERT((by_bytes == compare(a, b)));
}

RC_GTEST_PROP(TupleOrder, unpacking_gives_the_tuple_back, ()) {
  const Tuple tuple = *tuple_of(3);
  const std::string packed = pack(tuple);
  const Tuple unpacked = unpack(packed);
  RC_ASSERT((compare(unpacked, tuple) == 0));
  RC_ASSERT(pack(unpacked) == packed);
}

RC_GTEST_PROP(TupleOrder, range_holds_what_is_longer_and_nothing_else, ()) {
  const auto [a, b] = *two_tuples();
  const bool longer = b.size() > a.size() &&
                      compare(a, Tuple(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(a.size()))) == 0;
  RC_CLASSIFY(longer);
  RC_ASSERT(range(a).contains(pack(b)) == longer);
}

RC_GTEST_PROP(TupleOrder, strinc_ends_the_keys_with_a_prefix, ()) {
  const std::string prefix = *rc::gen::suchThat(nasty_bytes(), [](const std::string& bytes) {
    return bytes.find_last_not_of('\xff') != std::string::npos;
  });
  const std::string key = *nasty_bytes();
  RC_ASSERT(prefix + key < strinc(prefix));
  RC_ASSERT((prefix <= key && key < strinc(prefix)) == key.starts_with(prefix));
}

RC_GTEST_PROP(TupleOrder, random_bytes_are_refused_or_pack_to_the_same, ()) {
  const std::string bytes = *nasty_bytes();
  try {
    const Tuple tuple = unpack(bytes);
    std::string again;
    Packer packer(again);
    append(packer, tuple);
    RC_ASSERT(again == bytes);
  } catch (const Error& error) { RC_ASSERT(error.name() == "corrupt_key"); }
}

}  // namespace
}  // namespace divan::kv::tuple
