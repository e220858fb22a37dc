#include "divan/collation/strings.h"

#include <fmt/format.h>
#include <unicode/ustring.h>

#include <array>

#include "divan/base/error.h"

namespace divan::collation {
namespace {

constexpr std::size_t kKeptBufferSize = 1 << 16;

// The fast path for plain strings. A sort key consists of the primary weights of all characters, then their
// secondary and then their tertiary weights; runs of the common weight are compressed in the latter two.
// ASCII lower-case letters and digits have primary weights of one byte, and otherwise common weights. The key
// of a string of such characters is therefore one byte a character and a suffix that depends on the length
// only. Most keys are such strings, and table look-ups take a twentieth of the time. The tables are computed
// with ICU; if its version does not have these properties, the fast path is not used.
struct PlainStrings {
  static constexpr std::size_t kMaxLength = 48;

  std::array<char, 256> weights{};  ///< 0: not a plain character
  std::array<std::string, kMaxLength + 1> tails;

  explicit PlainStrings(StringCollator& collator) {
    for (std::size_t length = 1; length <= kMaxLength; ++length) {
      std::string key;
      collator.append_key_by_icu(key, std::string(length, 'a'));
      if (key.size() <= length || key.find_first_not_of(key[0]) != length) return;
      tails[length] = key.substr(length);
    }
    for (const char c : std::string_view("abcdefghijklmnopqrstuvwxyz0123456789")) {
      std::string key;
      collator.append_key_by_icu(key, std::string(1, c));
      if (key.substr(1) == tails[1]) weights[static_cast<unsigned char>(c)] = key[0];
    }
  }

  // Returns false, and leaves `out` unchanged, if `text` is not plain.
  bool append_key(std::string& out, std::string_view text) const {
    if (text.empty() || text.size() > kMaxLength) return false;
    std::array<char, kMaxLength> key;
    for (std::size_t i = 0; i < text.size(); ++i) {
      key[i] = weights[static_cast<unsigned char>(text[i])];
      if (key[i] == 0) return false;
    }
    out.append(key.data(), text.size());
    out += tails[text.size()];
    return true;
  }
};

std::string dotted(const UVersionInfo& version) {
  return fmt::format("{}.{}.{}.{}", version[0], version[1], version[2], version[3]);
}

}  // namespace

StringCollator& StringCollator::of_this_thread() {
  thread_local StringCollator instance;
  return instance;
}

StringCollator::StringCollator() {
  UErrorCode status = U_ZERO_ERROR;
  collator_.reset(ucol_open("", &status));
  if (U_FAILURE(status))
    throw internal_error(fmt::format("Cannot open ICU's root collator: {}.", u_errorName(status)));
}

void StringCollator::append_key(std::string& out, std::string_view text) {
  static const PlainStrings plain_strings(*this);
  if (!plain_strings.append_key(out, text)) append_key_by_icu(out, text);
}

void StringCollator::append_key_by_icu(std::string& out, std::string_view text) {
  if (text.size() > kMaxSize)
    throw bad_request(
        fmt::format("A string in a view's key has {} bytes; at most {} are allowed.", text.size(), kMaxSize));
  utf16_.resize(text.size());
  int32_t units = 0;
  UErrorCode status = U_ZERO_ERROR;
  u_strFromUTF8WithSub(utf16_.data(), static_cast<int32_t>(utf16_.size()), &units, text.data(),
                       static_cast<int32_t>(text.size()), 0xfffd, nullptr, &status);
  if (U_FAILURE(status))
    throw internal_error(fmt::format("A view's key is not UTF-8: {}.", u_errorName(status)));

  const std::size_t start = out.size();
  std::size_t capacity = 2 * static_cast<std::size_t>(units) + 16;
  for (;;) {
    out.resize(start + capacity);
    const auto needed = static_cast<std::size_t>(
        ucol_getSortKey(collator_.get(), utf16_.data(), units, reinterpret_cast<uint8_t*>(out.data() + start),
                        static_cast<int32_t>(capacity)));
    if (needed == 0) throw internal_error("ICU returned no sort key.");
    if (needed <= capacity) {
      out.resize(start + needed);
      break;
    }
    capacity = needed;
  }
  if (utf16_.capacity() > kKeptBufferSize) utf16_ = std::u16string();
}

StringCollator::Versions StringCollator::versions() const {
  UVersionInfo library, algorithm, collator;
  u_getVersion(library);
  ucol_getUCAVersion(collator_.get(), algorithm);
  ucol_getVersion(collator_.get(), collator);
  return {dotted(library), dotted(algorithm), dotted(collator)};
}

std::string StringCollator::version() const {
  const auto all = versions();
  return all.collator + '/' + all.algorithm;
}

}  // namespace divan::collation
