#include "divan/js/sandbox/hints.h"

namespace divan::js::sandbox {
namespace {

struct Rule {
  std::string_view message;  // what the engine's message contains
  std::string_view at;       // what the source contains at the error; empty: anything
  std::string_view near;     // what the line contains; empty: anything
  std::string_view hint;
};

constexpr std::string_view kForEach =
    "`for each (x in y)` was removed from JavaScript: write `for (const x of Object.values(y))`.";
constexpr std::string_view kComprehension =
    "Array comprehensions and generator expressions were removed from JavaScript: use map() and filter().";
constexpr std::string_view kXml = "E4X (XML in JavaScript) was removed: read the document's members instead.";
constexpr std::string_view kLetBlock =
    "`let (x = 1) ...` was removed from JavaScript: write `{ let x = 1; ... }`.";
constexpr std::string_view kOneFunction =
    "The source must be a single function expression: put helper functions inside it or into `views.lib`.";
constexpr std::string_view kGenerics =
    "Array.forEach(list, f) and the like were removed from JavaScript: write "
    "Array.prototype.forEach.call(list, f), or list.forEach(f).";
constexpr std::string_view kSource =
    "toSource() and uneval() were removed from JavaScript: use JSON.stringify().";
constexpr std::string_view kIterator =
    "Iterator() was removed from JavaScript: write `for (const [key, value] of Object.entries(object))`.";

// The first matching rule is used.
constexpr Rule kRules[] = {
    {"missing ( after for", "each", "", kForEach},
    {"missing ] after element list", "for", "", kComprehension},
    {"missing ) in parenthetical", "for", "", kComprehension},
    {"missing ) after argument list", "for", "", kComprehension},
    {"missing ) after catch", "if", "",
     "`catch (e if ...)` was removed from JavaScript: catch, test, and rethrow other exceptions."},
    {"missing { before function body", "", "",
     "Functions without braces (`function (x) x * x`) were removed from JavaScript: write `x => x * x`."},
    {"got '<'", "<", "", kXml},
    {"got keyword 'default'", "default xml", "", kXml},
    {"missing name after . operator", ".", "", kXml},
    {"illegal character U+0040", "", "", kXml},
    {"got keyword", "", "", kOneFunction},
    {"SyntaxError: unexpected token: keyword 'function'", "", "", kOneFunction},
    {"function statement requires a name", "", "", kOneFunction},
    {"missing )", "", "let (", kLetBlock},
    {"unexpected token", "", "let (", kLetBlock},
    {"unexpected token", "", "let(", kLetBlock},
    {"yield expression is only valid in generators", "", "",
     "Generators are written `function* () { ... }`."},
    {"'#' not followed by identifier", "", "#1", "Sharp variables (#1=) were removed from JavaScript."},
    {"missing = in const declaration", "", "", "A `const` needs a value; write `let` or `var`."},
    {"Iterator is not defined", "", "", kIterator},
    {"StopIteration is not defined", "", "", kIterator},
    {"uneval is not defined", "", "", kSource},
    {"toSource is not a function", "", "", kSource},
    {"XML is not defined", "", "", kXml},
    {"XMLList is not defined", "", "", kXml},
    {"toLocaleFormat is not a function", "", "",
     "toLocaleFormat() was removed from JavaScript: use toISOString() or the date's parts."},
    {"TypeError: Array.", "", "", kGenerics},
    {"TypeError: String.", "", "", kGenerics},
    {"invalid assignment to const", "", "",
     "SpiderMonkey 1.8.5 ignored assignments to a `const`; write `let` or `var`."},
};

bool fits(const Rule& rule, std::string_view message, std::string_view line, std::size_t offset) {
  if (message.find(rule.message) == std::string_view::npos) return false;
  if (!rule.near.empty() && line.find(rule.near) == std::string_view::npos) return false;
  return rule.at.empty() || (offset <= line.size() && line.substr(offset).starts_with(rule.at));
}

}  // namespace

std::string_view hint(std::string_view message, std::string_view line, std::size_t offset) {
  for (const auto& rule : kRules) {
    if (fits(rule, message, line, offset)) return rule.hint;
  }
  return {};
}

}  // namespace divan::js::sandbox
