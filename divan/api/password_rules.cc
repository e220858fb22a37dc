#include "divan/api/password_rules.h"

#include <fmt/core.h>
#include <re2/re2.h>

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::api {
namespace {

constexpr std::string_view kBroken = "Password does not conform to requirements.";

Error malformed(std::string_view what) {
  return bad_request(
      fmt::format("Setting [chttpd_auth] password_regexp is malformed ({}); expected a list such as "
                  R"([".{{10,}}", {{"[0-9]", "It needs a digit."}}].)",
                  what));
}

// Reads a list of strings, and of tuples of one or two strings, as Erlang writes them.
class ListReader {
 public:
  explicit ListReader(std::string_view text) : rest_(text) {}

  std::vector<std::vector<std::string>> read() {
    std::vector<std::vector<std::string>> elements;
    expect('[');
    if (!take(']')) {
      do elements.push_back(read_element());
      while (take(','));
      expect(']');
    }
    take('.');
    if (!rest_.empty()) throw malformed("something follows the list");
    return elements;
  }

 private:
  std::vector<std::string> read_element() {
    if (!take('{')) return {read_string()};
    std::vector<std::string> strings{read_string()};
    if (take(',')) strings.push_back(read_string());
    expect('}');
    return strings;
  }

  std::string read_string() {
    expect('"');
    std::string text;
    while (!rest_.empty() && rest_.front() != '"') {
      // Only the quote and the backslash are escaped: expressions have their own escapes.
      if (rest_.front() == '\\' && rest_.size() > 1 && (rest_[1] == '"' || rest_[1] == '\\'))
        rest_.remove_prefix(1);
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    expect('"');
    return text;
  }

  bool take(char c) {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    if (c != '"')
      while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c)) throw malformed(fmt::format("`{}` is missing", c));
  }

  std::string_view rest_;
};

}  // namespace

PasswordRules::PasswordRules(std::string_view text) {
  if (text.empty()) return;
  for (auto& strings : ListReader(text).read()) {
    RE2::Options options;
    options.set_log_errors(false);
    auto expression = std::make_shared<const RE2>(strings[0], options);
    if (!expression->ok()) throw malformed(expression->error());
    rules_.push_back({std::move(expression), strings.size() > 1 ? strings[1] : ""});
  }
}

PasswordRules PasswordRules::of(const Config& config) {
  return PasswordRules(config.get("chttpd_auth", "password_regexp", ""));
}

void PasswordRules::check(std::string_view password) const {
  for (const auto& rule : rules_) {
    if (RE2::PartialMatch(re2::StringPiece(password.data(), password.size()), *rule.expression)) continue;
    throw bad_request(rule.reason.empty() ? std::string(kBroken)
                                          : fmt::format("{} {}", kBroken, rule.reason));
  }
}

}  // namespace divan::api
