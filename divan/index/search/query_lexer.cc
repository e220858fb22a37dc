#include "divan/index/search/query_lexer.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/text/characters.h"

namespace divan::index::search {
namespace {

using Kind = QueryToken::Kind;

// An error quotes no more of a query.
constexpr std::size_t kMaxQuotedBytes = 200;
constexpr std::string_view kIdeographicSpace = "\u3000";

// The bytes of the white space at the beginning of `text`; 0 if there is none.
std::size_t space_bytes(std::string_view text) {
  if (text.empty()) return 0;
  if (text[0] == ' ' || text[0] == '\t' || text[0] == '\n' || text[0] == '\r') return 1;
  return text.starts_with(kIdeographicSpace) ? kIdeographicSpace.size() : 0;
}

bool is_special(char c) { return std::string_view("+-!():^[]\"{}~*?\\/").find(c) != std::string_view::npos; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The end of a text in which a backslash escapes the next character: the first `end` that is not escaped.
std::size_t find_unescaped(std::string_view text, std::size_t from, char end) {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == end) {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

void throw_query_error(std::string_view query, std::size_t position, std::string_view problem) {
  const auto before = query.substr(0, position);
  const auto characters =
      std::ranges::count_if(before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  throw bad_request(fmt::format("Cannot parse '{}{}': {}, at character {}.",
                                utf8_prefix(query, kMaxQuotedBytes),
                                query.size() > kMaxQuotedBytes ? "..." : "", problem, characters + 1));
}

QueryToken QueryLexer::token(Kind kind, std::size_t begin, std::string_view text) const {
  return {.kind = kind, .text = text, .position = begin};
}

void QueryLexer::skip_space() {
  while (const auto bytes = space_bytes(query_.substr(at_))) at_ += bytes;
}

bool QueryLexer::is_term_start() const {
  if (at_ >= query_.size()) return false;
  const char c = query_[at_];
  return c == '\\' || c == '*' || c == '?' || (!is_special(c) && space_bytes(query_.substr(at_)) == 0);
}

QueryToken QueryLexer::next() {
  skip_space();
  if (at_ == query_.size()) return token(Kind::end, at_, {});
  const std::size_t begin = at_;
  const auto single = [&](Kind kind) {
    ++at_;
    return token(kind, begin, query_.substr(begin, 1));
  };
  switch (query_[at_]) {
    case '+':
    case '-':
    case '!':
      if (space_bytes(query_.substr(at_ + 1)) != 0) return single(Kind::bare_operator);
      return single(query_[at_] == '+' ? Kind::plus : query_[at_] == '-' ? Kind::minus : Kind::negation);
    case '(': return single(Kind::open);
    case ')': return single(Kind::close);
    case ':': return single(Kind::colon);
    case '^': return number(Kind::boost);
    case '~': return number(Kind::fuzzy);
    case '"': return quoted();
    case '/': return regex();
    case '[':
    case '{': return range();
    case ']':
    case '}': fail(begin, "a range must begin with [ or {");
    default: return term();
  }
}

QueryToken QueryLexer::number(Kind kind) {
  const std::size_t begin = at_++;
  const std::size_t first = at_;
  while (at_ < query_.size() && is_digit(query_[at_])) ++at_;
  if (at_ > first && at_ + 1 < query_.size() && query_[at_] == '.' && is_digit(query_[at_ + 1])) {
    ++at_;
    while (at_ < query_.size() && is_digit(query_[at_])) ++at_;
  }
  if (kind == Kind::boost && at_ == first) fail(begin, "expected a number after ^");
  return token(kind, begin, query_.substr(first, at_ - first));
}

QueryToken QueryLexer::quoted() {
  const std::size_t begin = at_;
  const std::size_t end = find_unescaped(query_, begin + 1, '"');
  if (end == std::string_view::npos) fail(begin, "the closing quotation mark is missing");
  at_ = end + 1;
  return token(Kind::quoted, begin, query_.substr(begin + 1, end - begin - 1));
}

QueryToken QueryLexer::regex() {
  const std::size_t begin = at_;
  const std::size_t end = find_unescaped(query_, begin + 1, '/');
  if (end == std::string_view::npos)
    fail(begin, "the closing / of an expression is missing (an ordinary / is written \\/)");
  at_ = end + 1;
  return token(Kind::regex, begin, query_.substr(begin + 1, end - begin - 1));
}

QueryToken QueryLexer::term() {
  const std::size_t begin = at_;
  std::size_t wildcards = 0;
  bool ends_with_star = false;
  while (is_term_start() || (at_ < query_.size() && (query_[at_] == '-' || query_[at_] == '+'))) {
    const char c = query_[at_];
    if (c == '\\') {
      if (++at_ == query_.size()) fail(at_ - 1, "a character must follow a backslash");
    }
    ends_with_star = c == '*';
    if (c == '*' || c == '?') ++wildcards;
    text::next_character(query_, at_);
  }
  const auto text = query_.substr(begin, at_ - begin);
  if (text == "*") return token(Kind::star, begin, text);
  if (wildcards == 1 && ends_with_star) return token(Kind::prefix, begin, text.substr(0, text.size() - 1));
  if (wildcards > 0) return token(Kind::wildcard, begin, text);
  if (text == "AND" || text == "&&") return token(Kind::conjunction_and, begin, text);
  if (text == "OR" || text == "||") return token(Kind::conjunction_or, begin, text);
  if (text == "NOT") return token(Kind::negation, begin, text);
  return token(Kind::term, begin, text);
}

// One bound of a range.
std::string_view QueryLexer::bound(bool& is_quoted) {
  skip_space();
  const std::size_t begin = at_;
  is_quoted = at_ < query_.size() && query_[at_] == '"';
  if (is_quoted) return quoted().text;
  while (at_ < query_.size() && query_[at_] != ']' && query_[at_] != '}' &&
         space_bytes(query_.substr(at_)) == 0)
    text::next_character(query_, at_);
  if (at_ == begin) fail(begin, "expected a bound of a range");
  return query_.substr(begin, at_ - begin);
}

QueryToken QueryLexer::range() {
  QueryToken range = token(Kind::range, at_, {});
  range.with_lower = query_[at_++] == '[';
  range.lower = bound(range.is_lower_quoted);
  skip_space();
  const auto rest = query_.substr(at_);
  if (rest.starts_with("TO") && space_bytes(rest.substr(2)) != 0) {
    at_ += 2;
  } else {
    fail(at_, "expected TO between the bounds of a range");
  }
  range.upper = bound(range.is_upper_quoted);
  skip_space();
  if (at_ == query_.size() || (query_[at_] != ']' && query_[at_] != '}'))
    fail(at_, "expected ] or } at the end of a range");
  range.with_upper = query_[at_++] == ']';
  return range;
}

std::string unescape_term(std::string_view text, std::string_view query, std::size_t position) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) throw_query_error(query, position, "a character must follow a backslash");
    if (text[i] != 'u') {
      out += text[i];
      continue;
    }
    const auto digits = text.substr(i + 1, 4);
    const auto bytes = digits.size() == 4 ? from_hex(digits) : std::nullopt;
    if (!bytes) throw_query_error(query, position, "four hexadecimal digits must follow \\u");
    const UChar32 character = read_u16(*bytes);
    text::append_character(out, U_IS_SURROGATE(character) ? 0xFFFD : character);
    i += 4;
  }
  return out;
}

}  // namespace divan::index::search
