#include "divan/index/search/term_matcher.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "divan/base/error.h"
#include "divan/kv/tuple.h"
#include "divan/text/characters.h"

namespace divan::index::search {
namespace {

constexpr std::int64_t kMaxExpressionMemory = 1 << 20;
// Bytes of the bounds of an expression's terms.
constexpr int kBoundBytes = 20;

// The text as RE2 takes it: in some releases, this is neither a std::string_view nor made from one.
re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

// Lucene's expression in the syntax of RE2. `problem` is set if that is impossible.
std::string to_re2(std::string_view expression, std::string& problem) {
  std::string out;
  bool is_class = false;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (c == '\\') {
      if (++i == expression.size()) {
        problem = "a character must follow a backslash";
        return {};
      }
      std::size_t end = i;
      text::next_character(expression, end);
      out += re2::RE2::QuoteMeta(piece(expression.substr(i, end - i)));
      i = end - 1;
    } else if (is_class) {
      is_class = c != ']';
      if (c == '[') out += '\\';
      out += c;
    } else if (c == '"') {
      const auto end = expression.find('"', i + 1);
      if (end == std::string_view::npos) {
        problem = "a closing quotation mark is missing in the expression";
        return {};
      }
      out += "(?:" + re2::RE2::QuoteMeta(piece(expression.substr(i + 1, end - i - 1))) + ")";
      i = end;
    } else if (c == '@') {
      out += ".*";
    } else if (c == '^' || c == '$') {
      out += '\\';
      out += c;
    } else if (c == '~' || c == '&' || c == '#' || c == '<' || c == '>') {
      problem = fmt::format("the operator {} of expressions is not supported", c);
      return {};
    } else if (c == '(' && i + 1 < expression.size() && expression[i + 1] == '?') {
      problem = "a ? must follow what may be missing";
      return {};
    } else {
      is_class = c == '[';
      out += c;
    }
  }
  return out;
}

std::shared_ptr<const re2::RE2> compile(std::string_view expression, std::string& problem) {
  if (expression.size() > kMaxPatternBytes) {
    problem = fmt::format("an expression can have {} bytes at most", kMaxPatternBytes);
    return nullptr;
  }
  const std::string translated = to_re2(expression, problem);
  if (!problem.empty()) return nullptr;
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_dot_nl(true);
  options.set_max_mem(kMaxExpressionMemory);
  auto compiled = std::make_shared<const re2::RE2>("^(?:" + translated + ")$", options);
  if (compiled->ok()) return compiled;
  problem = "the expression is invalid: " + compiled->error();
  return nullptr;
}

// The text before the first wildcard, without escapes.
std::string literal_prefix(std::string_view pattern) {
  std::string prefix;
  for (std::size_t i = 0; i < pattern.size() && pattern[i] != '*' && pattern[i] != '?'; ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    prefix += pattern[i];
  }
  return prefix;
}

// Takes one element off a pattern: a character, * or ?.
struct PatternElement {
  UChar32 character = 0;
  bool is_any_text = false;
  bool is_any_character = false;
};

PatternElement next_element(std::string_view pattern, std::size_t& at) {
  if (pattern[at] == '*') return ++at, PatternElement{.is_any_text = true};
  if (pattern[at] == '?') return ++at, PatternElement{.is_any_character = true};
  if (pattern[at] == '\\' && at + 1 < pattern.size()) ++at;
  return {.character = text::next_character(pattern, at)};
}

// Goes back to the last * only, so the time is at most the product of the sizes.
bool matches_wildcard(std::string_view pattern, std::string_view term) {
  std::size_t p = 0, t = 0;
  std::optional<std::size_t> after_star;
  std::size_t retry = 0;
  while (t < term.size()) {
    if (p < pattern.size()) {
      std::size_t next = p;
      const auto element = next_element(pattern, next);
      if (element.is_any_text) {
        after_star = p = next;
        retry = t;
        continue;
      }
      std::size_t end = t;
      const auto character = text::next_character(term, end);
      if (element.is_any_character || element.character == character) {
        p = next;
        t = end;
        continue;
      }
    }
    if (!after_star) return false;
    text::next_character(term, retry);
    t = retry;
    p = *after_star;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();)
    characters += static_cast<char32_t>(text::next_character(text, at));
  return characters;
}

// The number of insertions, deletions, replacements and exchanges of neighbours that make one text of the
// other, each of which may touch a place once; more than `most` if it is. The time is proportional to the
// length: pairs of places that are farther apart than `most` need more.
std::size_t distance(const std::u32string& a, const std::u32string& b, std::size_t most) {
  constexpr std::size_t kBand = 5;  // the most pairs of a place, if `most` is 2
  if (a.size() > b.size() + most || b.size() > a.size() + most || most > kBand / 2) return most + 1;
  // Of place i of `a`: the distances for the places i - most to i + most of `b`.
  using Band = std::array<std::size_t, kBand + 2>;
  const std::size_t width = 2 * most + 1;
  Band before_last{}, last{}, row{};
  for (std::size_t k = 0; k < width; ++k) last[k] = k < most ? most + 1 : k - most;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t least = most + 1;
    for (std::size_t k = 0; k < width; ++k) {
      // j = i + k - most is the place in `b`.
      if (i + k < most || i + k - most > b.size()) {
        row[k] = most + 1;
        continue;
      }
      const std::size_t j = i + k - most;
      std::size_t edits = k + 1 < width ? last[k + 1] + 1 : most + 1;  // a character of `a` is not in `b`
      if (j > 0) {
        if (k > 0) edits = std::min(edits, row[k - 1] + 1);
        edits = std::min(edits, last[k] + (a[i - 1] == b[j - 1] ? 0 : 1));
        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
          edits = std::min(edits, before_last[k] + 1);
      }
      row[k] = std::min(edits, most + 1);
      least = std::min(least, row[k]);
    }
    if (least > most) return most + 1;
    before_last = last;
    last = row;
  }
  return last[b.size() + most - a.size()];
}

}  // namespace

TermMatcher::TermMatcher(const Query& query)
    : kind_(query.kind),
      text_(query.text),
      with_lower_(query.with_lower),
      with_upper_(query.with_upper),
      lower_(query.lower),
      upper_(query.upper),
      has_upper_(query.has_upper),
      edits_(static_cast<std::size_t>(query.edits)) {
  const auto begins_with = [&](const std::string& prefix) {
    begin_ = prefix;
    if (!prefix.empty()) end_ = kv::strinc(prefix);
  };
  switch (kind_) {
    case Query::Kind::prefix: begins_with(text_); break;
    case Query::Kind::wildcard: begins_with(literal_prefix(text_)); break;
    case Query::Kind::fuzzy:
      characters_ = characters_of(text_);
      if (edits_ == 0) begins_with(text_);
      break;
    case Query::Kind::text_range:
      if (query.has_lower) begin_ = lower_;
      if (query.has_upper) end_ = upper_ + '\0';
      break;
    default: {
      std::string problem;
      regex_ = compile(text_, problem);
      if (!regex_) throw bad_request(problem);
      if (std::string greatest; regex_->PossibleMatchRange(&begin_, &greatest, kBoundBytes)) {
        // A term that begins with the greatest one may be longer.
        if (greatest.find_first_not_of('\xff') != std::string::npos) end_ = kv::strinc(greatest);
      } else {
        begin_.clear();
      }
    }
  }
}

std::optional<double> TermMatcher::match(std::string_view term) const {
  const auto if_so = [](bool is_match) { return is_match ? std::optional(1.0) : std::nullopt; };
  switch (kind_) {
    case Query::Kind::prefix: return if_so(term.starts_with(text_));
    case Query::Kind::wildcard: return if_so(matches_wildcard(text_, term));
    case Query::Kind::fuzzy: return match_fuzzy(term);
    case Query::Kind::text_range:
      return if_so((with_lower_ ? term >= lower_ : term > lower_) &&
                   (!has_upper_ || (with_upper_ ? term <= upper_ : term < upper_)));
    default: return if_so(re2::RE2::FullMatch(piece(term), *regex_));
  }
}

std::uint64_t TermMatcher::cost(std::string_view term) const {
  constexpr std::size_t kBytesOfAnEntry = 16;
  switch (kind_) {
    case Query::Kind::wildcard: return 1 + text_.size() * term.size() / kBytesOfAnEntry;
    case Query::Kind::fuzzy:
    case Query::Kind::regex: return 1 + 4 * term.size() / kBytesOfAnEntry;
    default: return 1;
  }
}

std::optional<double> TermMatcher::match_fuzzy(std::string_view term) const {
  // A character has at most four bytes.
  if (term.size() > 4 * (characters_.size() + edits_) || term.size() + edits_ < characters_.size())
    return std::nullopt;
  const auto characters = characters_of(term);
  const auto edits = distance(characters_, characters, edits_);
  if (edits > edits_) return std::nullopt;
  // As Lucene. Terms of which nothing remains do not match.
  const double similarity =
      1 - static_cast<double>(edits) /
              static_cast<double>(std::max<std::size_t>(1, std::min(characters.size(), characters_.size())));
  if (similarity <= 0) return std::nullopt;
  return similarity;
}

std::string problem_of_regex(std::string_view expression) {
  std::string problem;
  compile(expression, problem);
  return problem;
}

}  // namespace divan::index::search
