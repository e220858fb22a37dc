#include "divan/collation/collation.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/collation/number.h"
#include "divan/collation/strings.h"
#include "divan/collation/tokens.h"

namespace divan::collation {
namespace {

// The version of the encoding below; ICU's part has its own version.
constexpr std::string_view kEncodingVersion = "1";

constexpr char kEnd = 0;

struct Tags {
  char null, false_, true_, number, string, array, object;
};

constexpr Tags kUnicodeTags{1, 2, 3, 4, 5, 6, 7};
constexpr Tags kRawTags{3, 2, 4, 1, 7, 6, 5};

const Tags& tags_of(Collation collation) { return collation == Collation::raw ? kRawTags : kUnicodeTags; }

[[noreturn]] void refuse_json() { throw internal_error("A view's key is not compact JSON."); }
[[noreturn]] void refuse_encoding() { throw internal_error("Not an encoded view key."); }

// Integers in this range of doubles are encoded with their difference from the double.
bool has_difference(double value) { return std::fabs(value) >= 0x1p53 && std::fabs(value) < 0x1p126; }

constexpr std::size_t kDifferenceSize = 10;

std::uint64_t ordered_bits(double value) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
  return bits & kSign ? ~bits : bits | kSign;
}

double from_ordered_bits(std::uint64_t ordered) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  return std::bit_cast<double>(ordered & kSign ? ordered & ~kSign : ~ordered);
}

void append_number(std::string& out, std::string_view token) {
  const std::optional<Int128> integer = integer_value(token);
  const double nearest = integer ? to_double(*integer) : double_value(token);
  append_u64(out, ordered_bits(nearest));
  if (!has_difference(nearest)) return;
  const Int128 difference = (integer ? *integer - static_cast<Int128>(nearest) : 0) + (Int128{1} << 79);
  append_u16(out, static_cast<std::uint16_t>(difference >> 64));
  append_u64(out, static_cast<std::uint64_t>(difference));
}

// The bytes in their order and a zero; zeros and ones inside are escaped.
void append_raw_string(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\0' || c == '\1') out += '\1';
    out += c == '\0' ? '\1' : c == '\1' ? '\2' : c;
  }
  out += kEnd;
}

/// Encodes each token in one pass over the text. Nesting needs no stack: an opening bracket is encoded as a
/// tag, a closing one always as zero, and the encoding of the elements does not depend on the depth.
class Encoder {
 public:
  Encoder(std::string& out, std::string_view json, Collation collation)
      : out_(out), json_(json), collation_(collation), tags_(tags_of(collation)) {}

  void run() {
    if (json_.empty()) refuse_json();
    while (at_ < json_.size()) token();
  }

 private:
  void token() {
    switch (json_[at_]) {
      case '{': return single(tags_.object);
      case '[': return single(tags_.array);
      case '}':
      case ']': return single(kEnd);
      case ',':
      case ':': ++at_; return;
      case '"': return string();
      case 'n': return literal("null", tags_.null);
      case 'f': return literal("false", tags_.false_);
      case 't': return literal("true", tags_.true_);
      default: return number();
    }
  }

  void single(char byte) {
    out_ += byte;
    ++at_;
  }

  void literal(std::string_view word, char tag) {
    if (json_.substr(at_, word.size()) != word) refuse_json();
    out_ += tag;
    at_ += word.size();
  }

  void number() {
    const std::size_t end = number_end(json_, at_);
    if (end == at_) refuse_json();
    out_ += tags_.number;
    append_number(out_, json_.substr(at_, end - at_));
    at_ = end;
  }

  void string() {
    const std::optional<std::size_t> end = closing_quote(json_, at_);
    if (!end) refuse_json();
    const std::string_view raw = json_.substr(at_ + 1, *end - at_ - 1);
    out_ += tags_.string;
    if (raw.find('\\') == std::string_view::npos) {
      string_key(raw);
    } else {
      string_key(json::unescape(raw));
    }
    at_ = *end + 1;
  }

  void string_key(std::string_view text) {
    if (collation_ == Collation::raw) {
      append_raw_string(out_, text);
    } else {
      StringCollator::of_this_thread().append_key(out_, text);
    }
  }

  std::string& out_;
  const std::string_view json_;
  const Collation collation_;
  const Tags& tags_;
  std::size_t at_ = 0;
};

// The index after the encoded value that begins at `at`.
std::size_t skip_value(std::string_view encoded, std::size_t at, const Tags& tags) {
  std::size_t depth = 0;
  do {
    if (at >= encoded.size()) refuse_encoding();
    const char tag = encoded[at++];
    if (tag == kEnd) {
      if (depth-- == 0) refuse_encoding();
    } else if (tag == tags.array || tag == tags.object) {
      ++depth;
    } else if (tag == tags.string) {
      const std::size_t end = encoded.find(kEnd, at);
      if (end == std::string_view::npos) refuse_encoding();
      at = end + 1;
    } else if (tag == tags.number) {
      if (encoded.size() - at < 8) refuse_encoding();
      at += has_difference(from_ordered_bits(read_u64(encoded.substr(at)))) ? 8 + kDifferenceSize : 8;
    } else if (tag != tags.null && tag != tags.false_ && tag != tags.true_) {
      refuse_encoding();
    }
  } while (depth > 0);
  if (at > encoded.size()) refuse_encoding();
  return at;
}

}  // namespace

void append_key(std::string& out, std::string_view json, Collation collation) {
  Encoder(out, json, collation).run();
}

std::string encode_key(std::string_view json, Collation collation) {
  std::string out;
  append_key(out, json, collation);
  return out;
}

std::string_view group_prefix(std::string_view encoded, std::size_t level, Collation collation) {
  const Tags& tags = tags_of(collation);
  if (encoded.empty() || encoded.front() != tags.array) {
    return encoded.substr(0, skip_value(encoded, 0, tags));
  }
  std::size_t at = 1;
  for (std::size_t i = 0; i < level; ++i) {
    if (at >= encoded.size()) refuse_encoding();
    if (encoded[at] == kEnd) return encoded.substr(0, at + 1);
    at = skip_value(encoded, at, tags);
  }
  return encoded.substr(0, at);
}

std::string version(Collation collation) {
  const std::string version(kEncodingVersion);
  if (collation == Collation::raw) return version + "/raw";
  return version + '/' + StringCollator::of_this_thread().version();
}

}  // namespace divan::collation
