// The words of the standard tokenizer, and addresses of e-mail and URLs as one word each, as Lucene's
// UAX29URLEmailTokenizer
// (https://lucene.apache.org/core/4_6_1/analyzers-common/org/apache/lucene/analysis/standard/UAX29URLEmailTokenizer.html).
//
// At each place the longest match is a word: that of Unicode's word breaks, or one of
//   an address          local.part@domain, local.part@[...]
//   a URL               http://..., https://..., ftp://.../..., file://.../...
//   one without scheme  domain, IPv4 address; with a port, a path, a query, a fragment
// A domain without a scheme, and that of an address, ends with a top-level domain of 2013, as in Lucene 4.6.
// It must be the whole label, where Lucene finds it at the start of one too, and divides `a-b.command` after
// `a-b.com`. Local parts in quotes are not recognised.
#pragma once

#include "divan/text/word_breaks.h"

namespace divan::text {

/// See Tokenizer.
class EmailTokenizer final : public Tokenizer {
 public:
  explicit EmailTokenizer(std::string_view text) : text_(text), words_(text) {}

  bool next(Word& word) override;

 private:
  std::size_t match_address(std::size_t begin);
  std::size_t match_url(std::size_t begin);
  std::size_t match_strict_domain(std::size_t begin);

  const std::string_view text_;
  WordBreaks words_;
  std::uint32_t position_ = 0;
  // No address, and no domain with a top-level domain, begins before these offsets.
  std::size_t no_address_before_ = 0, no_domain_before_ = 0;
};

}  // namespace divan::text
