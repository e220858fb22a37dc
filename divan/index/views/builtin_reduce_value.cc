#include "divan/index/views/builtin_reduce_value.h"

#include <cmath>
#include <optional>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/collation/tokens.h"
#include "divan/index/views/reducer.h"

namespace divan::index::views {
namespace {

// Returns -1, 0 or 1 as the integer is less than, equal to or greater than the double, without rounding.
int compare(collation::Int128 integer, double other) {
  if (std::isnan(other)) return 0;
  if (other >= 0x1p127) return -1;
  if (other < -0x1p127) return 1;
  const auto whole = static_cast<collation::Int128>(other);
  if (integer != whole) return integer < whole ? -1 : 1;
  const double rest = other - std::trunc(other);
  return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

[[noreturn]] void refuse() { throw internal_error("A value to be reduced is not compact JSON."); }

/// Parses text in one pass; the text has been checked before.
class Parser {
 public:
  explicit Parser(std::string_view json) : json_(json) {}

  Value whole() {
    Value parsed = value();
    if (at_ != json_.size()) refuse();
    return parsed;
  }

 private:
  char next() const {
    if (at_ >= json_.size()) refuse();
    return json_[at_];
  }

  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }

  void open(char bracket) {
    take(bracket);
    if (++depth_ > json::kMaxDepth) refuse();
  }

  void close(char bracket) {
    if (!take(bracket)) refuse();
    --depth_;
  }

  Value value() {
    switch (next()) {
      case '{': return object();
      case '[': return array();
      case '"': return Opaque{std::string(quoted())};
      case 'n': return literal("null");
      case 't': return literal("true");
      case 'f': return literal("false");
      default: return number();
    }
  }

  Value array() {
    Array elements;
    open('[');
    if (next() != ']') {
      do elements.push_back(value());
      while (take(','));
    }
    close(']');
    return elements;
  }

  Value object() {
    Members members;
    open('{');
    if (next() != '}') {
      do members.list.push_back(member());
      while (take(','));
    }
    close('}');
    return members;
  }

  std::pair<std::string, Value> member() {
    if (next() != '"') refuse();
    std::string name = json::string_value(quoted()).value();
    if (!take(':')) refuse();
    return {std::move(name), value()};
  }

  Value number() {
    const std::size_t end = collation::number_end(json_, at_);
    if (end == at_) refuse();
    const Number parsed = Number::parse(json_.substr(at_, end - at_));
    at_ = end;
    return parsed;
  }

  Value literal(std::string_view word) {
    if (json_.substr(at_, word.size()) != word) refuse();
    at_ += word.size();
    return Opaque{std::string(word)};
  }

  // Returns a string with its quotes.
  std::string_view quoted() {
    const std::size_t start = at_;
    const std::optional<std::size_t> end = collation::closing_quote(json_, start);
    if (!end) refuse();
    at_ = *end + 1;
    return json_.substr(start, at_ - start);
  }

  const std::string_view json_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

struct PrintVisitor {
  std::string& out;
  void operator()(const Number& number) { number.append_to(out); }
  void operator()(const Opaque& opaque) { out += opaque.text; }
  void operator()(const Array& array) {
    out += '[';
    for (std::size_t i = 0; i < array.size(); ++i) {
      if (i > 0) out += ',';
      append_value(out, array[i]);
    }
    out += ']';
  }
  void operator()(const Members& members) {
    out += '{';
    for (std::size_t i = 0; i < members.list.size(); ++i) {
      if (i > 0) out += ',';
      json::append_string(out, members.list[i].first);
      out += ':';
      append_value(out, members.list[i].second);
    }
    out += '}';
  }
};

}  // namespace

Number Number::parse(std::string_view token) {
  if (const auto integer = collation::integer_value(token)) return Number(*integer);
  return Number(collation::double_value(token));
}

Number& Number::operator+=(const Number& other) {
  if (is_integer_ && other.is_integer_) {
    collation::Int128 sum = 0;
    if (!__builtin_add_overflow(integer_, other.integer_, &sum)) {
      integer_ = sum;
      return *this;
    }
  }
  *this = Number(as_double() + other.as_double());
  return *this;
}

Number Number::squared() const {
  collation::Int128 square = 0;
  if (is_integer_ && !__builtin_mul_overflow(integer_, integer_, &square)) return Number(square);
  return Number(as_double() * as_double());
}

bool Number::operator<(const Number& other) const {
  if (is_integer_ && other.is_integer_) return integer_ < other.integer_;
  if (is_integer_) return compare(integer_, other.double_) < 0;
  if (other.is_integer_) return compare(other.integer_, double_) > 0;
  return double_ < other.double_;
}

void Number::append_to(std::string& out) const {
  if (is_integer_) {
    out += collation::to_string(integer_);
  } else if (std::isfinite(double_)) {
    json::append_double(out, double_ == 0 ? 0.0 : double_);  // "-0" would be read back as an integer
  } else {
    throw ReduceError("builtin_reduce_error", "A number is beyond the range of double precision.");
  }
}

Value parse_value(std::string_view json) { return Parser(json).whole(); }

void append_value(std::string& out, const Value& value) { std::visit(PrintVisitor{out}, value); }

std::string to_json(const Value& value) {
  std::string out;
  append_value(out, value);
  return out;
}

}  // namespace divan::index::views
