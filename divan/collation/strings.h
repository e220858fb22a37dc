// Sort keys of strings under ICU's root collator with its default attributes: the order of strings in
// CouchDB's views (couch_ejson_compare.c calls ucol_open("") and compares).
#pragma once

#include <unicode/ucol.h>

#include <memory>
#include <string>
#include <string_view>

namespace divan::collation {

/// Creates sort keys. Not thread-safe; each thread has its own.
class StringCollator {
 public:
  static StringCollator& of_this_thread();

  /// Throws an internal error if ICU has no root collator.
  StringCollator();

  /// Appends the sort key of `text` (UTF-8): bytes other than zero, and a zero. Strings that collate as equal
  /// have equal keys. Throws bad_request for more than kMaxSize bytes.
  void append_key(std::string& out, std::string_view text);

  /// The same without the fast path.
  void append_key_by_icu(std::string& out, std::string_view text);

  /// The versions of the collator's data and of the Unicode collation algorithm, "153.120.0.0/15.0.0.0". Keys
  /// made by different versions must not be compared.
  std::string version() const;

  struct Versions {
    std::string library;    ///< of ICU
    std::string algorithm;  ///< the Unicode collation algorithm
    std::string collator;   ///< the collator's data
  };
  Versions versions() const;

  static constexpr std::size_t kMaxSize = 16 << 20;

 private:
  struct Close {
    void operator()(UCollator* collator) const { ucol_close(collator); }
  };

  std::unique_ptr<UCollator, Close> collator_;
  std::u16string utf16_;
};

}  // namespace divan::collation
