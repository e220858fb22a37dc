// Analyzers of full text. An input is a line with the analyzer, its name or JSON, and the text: any bytes.
// Tokens are parts of the text in its order, and their terms are valid UTF-8; the text in another buffer has
// the same tokens.
#include <string>

#include "divan/base/json.h"
#include "divan/text/analyzer.h"
#include "fuzz/check.h"

namespace {

using divan::fuzz::check;
using divan::text::Token;

std::string tokens_of(const divan::text::Analyzer& analyzer, std::string_view text) {
  std::string tokens;
  Token last;
  bool is_first = true;
  analyzer.analyze(text, [&](const Token& token) {
    check(token.begin <= token.end && token.end <= text.size());
    check(divan::is_utf8(token.term));
    if (!is_first) {
      check(token.position > last.position);
      // Pairs of characters overlap.
      check(token.begin > last.begin && token.end > last.end);
    }
    is_first = false;
    last = token;
    tokens += token.term + '\n' + std::to_string(token.position) + ' ' + std::to_string(token.begin) + '\n';
  });
  return tokens;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto input = divan::fuzz::text_of(data, size);
  const auto line_end = std::min(input.find('\n'), input.size());
  const auto definition = input.substr(0, line_end);
  const std::string text(input.substr(std::min(line_end + 1, size)));
  divan::fuzz::answers(400, [&] {
    const bool is_name = !definition.starts_with('{') && divan::is_utf8(definition);
    const auto analyzer =
        divan::text::make_analyzer(is_name ? divan::json::quoted(definition) : std::string(definition));
    const auto tokens = tokens_of(*analyzer, text);
    check(tokens == tokens_of(analyzer->analyzer_for("default"), std::string(text)));
    tokens_of(analyzer->analyzer_for("other"), text);
  });
  return 0;
}
