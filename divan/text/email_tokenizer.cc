#include "divan/text/email_tokenizer.h"

#include <algorithm>
#include <array>

#include "divan/text/characters.h"

namespace divan::text {
namespace {

// Those of 2013, in the order of ASCII, except internationalised ones, which begin with xn--.
constexpr std::string_view kTopLevelDomains[] = {
    "ac",  "ad",   "ae",   "aero", "af",  "ag", "ai",   "al", "am",     "an",  "ao",  "aq", "ar",   "arpa",
    "as",  "asia", "at",   "au",   "aw",  "ax", "az",   "ba", "bb",     "bd",  "be",  "bf", "bg",   "bh",
    "bi",  "biz",  "bj",   "bm",   "bn",  "bo", "br",   "bs", "bt",     "bv",  "bw",  "by", "bz",   "ca",
    "cat", "cc",   "cd",   "cf",   "cg",  "ch", "ci",   "ck", "cl",     "cm",  "cn",  "co", "com",  "coop",
    "cr",  "cu",   "cv",   "cw",   "cx",  "cy", "cz",   "de", "dj",     "dk",  "dm",  "do", "dz",   "ec",
    "edu", "ee",   "eg",   "er",   "es",  "et", "eu",   "fi", "fj",     "fk",  "fm",  "fo", "fr",   "ga",
    "gb",  "gd",   "ge",   "gf",   "gg",  "gh", "gi",   "gl", "gm",     "gn",  "gov", "gp", "gq",   "gr",
    "gs",  "gt",   "gu",   "gw",   "gy",  "hk", "hm",   "hn", "hr",     "ht",  "hu",  "id", "ie",   "il",
    "im",  "in",   "info", "int",  "io",  "iq", "ir",   "is", "it",     "je",  "jm",  "jo", "jobs", "jp",
    "ke",  "kg",   "kh",   "ki",   "km",  "kn", "kp",   "kr", "kw",     "ky",  "kz",  "la", "lb",   "lc",
    "li",  "lk",   "lr",   "ls",   "lt",  "lu", "lv",   "ly", "ma",     "mc",  "md",  "me", "mg",   "mh",
    "mil", "mk",   "ml",   "mm",   "mn",  "mo", "mobi", "mp", "mq",     "mr",  "ms",  "mt", "mu",   "museum",
    "mv",  "mw",   "mx",   "my",   "mz",  "na", "name", "nc", "ne",     "net", "nf",  "ng", "ni",   "nl",
    "no",  "np",   "nr",   "nu",   "nz",  "om", "org",  "pa", "pe",     "pf",  "pg",  "ph", "pk",   "pl",
    "pm",  "pn",   "post", "pr",   "pro", "ps", "pt",   "pw", "py",     "qa",  "re",  "ro", "rs",   "ru",
    "rw",  "sa",   "sb",   "sc",   "sd",  "se", "sg",   "sh", "si",     "sj",  "sk",  "sl", "sm",   "sn",
    "so",  "sr",   "st",   "su",   "sv",  "sx", "sy",   "sz", "tc",     "td",  "tel", "tf", "tg",   "th",
    "tj",  "tk",   "tl",   "tm",   "tn",  "to", "tp",   "tr", "travel", "tt",  "tv",  "tw", "tz",   "ua",
    "ug",  "uk",   "us",   "uy",   "uz",  "va", "vc",   "ve", "vg",     "vi",  "vn",  "vu", "wf",   "ws",
    "xxx", "ye",   "yt",   "za",   "zm",  "zw"};

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_one_of(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

// The characters of local parts: Lucene's expression has a range from + to /, so the comma too.
bool is_local(char c) { return is_alphanumeric(c) || is_one_of(c, "!#$%&'*+,-./=?^_`{|}~"); }
bool is_unreserved(char c) { return is_alphanumeric(c) || is_one_of(c, "-._~"); }

bool has(std::string_view text, std::size_t at, char c) { return at < text.size() && text[at] == c; }

// The end of what begins at `at`, of characters that are unreserved, percent-encoded or in `others`.
std::size_t skip(std::string_view text, std::size_t at, std::string_view others) {
  const auto is_hexadecimal = [&](std::size_t place) {
    return place < text.size() && is_one_of(text[place], "0123456789abcdefABCDEF");
  };
  while (at < text.size()) {
    if (is_unreserved(text[at]) || is_one_of(text[at], others)) {
      ++at;
    } else if (text[at] == '%' && is_hexadecimal(at + 1) && is_hexadecimal(at + 2)) {
      at += 3;
    } else {
      break;
    }
  }
  return at;
}

bool skip_word(std::string_view text, std::size_t& at, std::string_view word) {
  if (text.size() - at < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i)
    if (lower(text[at + i]) != word[i]) return false;
  at += word.size();
  return true;
}

// Labels with dots between them.
struct Domain {
  std::size_t end = 0;     // its start, if there is none
  std::size_t strict = 0;  // of the longest one that ends with a top-level domain; otherwise its start
};

bool is_top_level(std::string_view label) {
  std::string lowered(label.substr(0, 7));
  std::ranges::transform(lowered, lowered.begin(), lower);
  if (lowered.starts_with("xn--")) return true;
  return label.size() < 7 && std::ranges::binary_search(kTopLevelDomains, std::string_view(lowered));
}

// The end of a label, which does not end with a hyphen.
std::size_t label_end(std::string_view text, std::size_t at) {
  std::size_t end = at;
  if (at >= text.size() || !is_alphanumeric(text[at])) return at;
  for (; at < text.size() && (is_alphanumeric(text[at]) || text[at] == '-'); ++at)
    if (text[at] != '-') end = at + 1;
  return end;
}

// The top-level domain that a label begins with: `foo.comx` is none, but of `foo.com-` it is `foo.com`.
Domain read_domain(std::string_view text, std::size_t begin) {
  Domain domain{begin, begin};
  std::size_t at = begin;
  for (int labels = 1;; ++labels) {
    const std::size_t end = label_end(text, at);
    if (end == at) return domain;
    domain.end = end;
    if (labels > 1 && is_top_level(text.substr(at, end - at))) domain.strict = end;
    if (!has(text, end, '.')) return domain;
    at = end + 1;
    if (domain.strict == end) domain.strict = at;  // with the dot of the root
  }
}

// Four numbers up to 255; `begin` if there are none.
std::size_t match_ipv4(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  for (int part = 0; part < 4; ++part) {
    if (part > 0 && !has(text, at, '.')) return begin;
    if (part > 0) ++at;
    int value = 0;
    std::size_t digits = at;
    for (; digits < text.size() && digits < at + 3 && is_digit(text[digits]); ++digits) {
      if (value * 10 + text[digits] - '0' > 255) break;
      value = value * 10 + text[digits] - '0';
    }
    if (digits == at) return begin;
    at = digits;
  }
  return at;
}

// An address in brackets, as of IPv6.
std::size_t match_bracketed(std::string_view text, std::size_t begin) {
  if (!has(text, begin, '[')) return begin;
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] > 0 && !is_one_of(text[at], "[]\\\r\n\t ")) ++at;
  return has(text, at, ']') ? at + 1 : begin;
}

std::size_t skip_port(std::string_view text, std::size_t at) {
  if (!has(text, at, ':')) return at;
  std::size_t end = at + 1;
  while (end < text.size() && end < at + 6 && is_digit(text[end])) ++end;
  return end == at + 1 ? at : end;
}

constexpr std::string_view kSubDelimiters = "!$&'()*+,;=";
constexpr std::string_view kQuery = "!$&'()*+,;=:@/?";

// user@, user:password@
std::size_t skip_login(std::string_view text, std::size_t at) {
  std::size_t end = skip(text, at, kSubDelimiters);
  if (has(text, end, ':')) end = skip(text, end + 1, kSubDelimiters);
  return has(text, end, '@') ? end + 1 : at;
}

std::size_t skip_host(std::string_view text, std::size_t at) {
  const std::size_t end = match_bracketed(text, at);
  return end > at ? end : read_domain(text, at).end;
}

std::size_t skip_path_and_query(std::string_view text, std::size_t at) {
  while (has(text, at, '/')) at = skip(text, at + 1, ";:@&=");
  if (has(text, at, '?')) at = skip(text, at + 1, kQuery);
  return has(text, at, '#') ? skip(text, at + 1, kQuery) : at;
}

// The path of an FTP or file URL, which must not be missing.
std::size_t skip_file_path(std::string_view text, std::size_t at) {
  while (has(text, at, '/')) at = skip(text, at + 1, "?:@&=");
  return at;
}

// With a scheme; `begin` if there is none.
std::size_t match_full_url(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  if (skip_word(text, at, "http://") || skip_word(text, at, "https://")) {
    const std::size_t host = skip_login(text, at);
    const std::size_t end = skip_host(text, host);
    return end == host ? begin : skip_path_and_query(text, skip_port(text, end));
  }
  if (skip_word(text, at, "ftp://")) {
    const std::size_t host = skip_login(text, at);
    const std::size_t end = skip_host(text, host);
    if (end == host) return begin;
    const std::size_t path = skip_port(text, end), path_end = skip_file_path(text, path);
    if (path_end == path) return begin;
    std::size_t type = path_end;
    if (skip_word(text, type, ";type=") && type < text.size() && is_one_of(lower(text[type]), "aid"))
      return type + 1;
    return path_end;
  }
  if (skip_word(text, at, "file://")) {
    const std::size_t path = skip_host(text, at), path_end = skip_file_path(text, path);
    return path_end == path ? begin : path_end;
  }
  return begin;
}

}  // namespace

bool EmailTokenizer::next(Word& word) {
  while (words_.at() < text_.size()) {
    const std::size_t begin = words_.at();
    const bool is_word = words_.next_here(word);
    std::size_t end = is_word ? word.end : begin;
    const bool is_ascii = static_cast<unsigned char>(text_[begin]) < 0x80;
    const std::size_t other = is_ascii ? std::max(match_address(begin), match_url(begin)) : begin;
    if (other > end) {
      word = {begin, other, 0, WordKind::word};
      words_.move(end = other);
    }
    if (end == begin) continue;
    word.position = position_++;
    const auto found = text_.substr(word.begin, word.end - word.begin);
    if (found.size() <= kMaxWordUnits || utf16_units(found) <= kMaxWordUnits) return true;
  }
  return false;
}

std::size_t EmailTokenizer::match_address(std::size_t begin) {
  if (begin < no_address_before_) return begin;
  std::size_t at = begin;
  while (at < text_.size() && is_local(text_[at])) ++at;
  // A later start in these characters leads to the same place.
  no_address_before_ = std::max(at, begin + 1);
  if (at == begin || !has(text_, at, '@')) return begin;
  const std::size_t host = at + 1;
  const std::size_t end = std::max(match_bracketed(text_, host), read_domain(text_, host).strict);
  return end > host ? end : begin;
}

std::size_t EmailTokenizer::match_url(std::size_t begin) {
  if (!is_alphanumeric(text_[begin])) return begin;
  std::size_t end = match_full_url(text_, begin);
  const std::size_t host = std::max(match_ipv4(text_, begin), match_strict_domain(begin));
  if (host > begin) end = std::max(end, skip_path_and_query(text_, skip_port(text_, host)));
  return end;
}

std::size_t EmailTokenizer::match_strict_domain(std::size_t begin) {
  if (begin < no_domain_before_) return begin;
  const auto domain = read_domain(text_, begin);
  if (domain.strict == begin) no_domain_before_ = domain.end;
  return domain.strict;
}

}  // namespace divan::text
