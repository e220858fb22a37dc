// A selector and a document, in two lines: an error, or what is equivalent gives the same result.
#include "divan/selector/selector.h"

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
using divan::selector::Selector;
namespace json = divan::json;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  const auto line = std::min(text.find('\n'), text.size());
  std::string given, document;
  if (!answers(400, [&] { given = json::compact(text.substr(0, line)); })) return 0;
  if (!answers(400, [&] { document = json::compact(text.substr(std::min(line + 1, text.size()))); }))
    return 0;
  if (!document.starts_with('{')) return 0;
  const auto result = [&](const std::string& selector) -> std::optional<bool> {
    try {
      return Selector::parse(selector).matches(document);
    } catch (const divan::Error& error) {
      check(error.status() == 400 || error.status() == 413);  // invalid, or too expensive
      return std::nullopt;
    }
  };
  const auto matches = result(given);
  if (!matches) return 0;
  const auto same = [&](const std::string& selector) {
    const auto other = result(selector);
    check(!other || other == matches);  // it may exceed a limit
  };
  if (given == "{}") return 0;  // within others it is a value
  same("{\"$and\":[" + given + "]}");
  same("{\"$or\":[" + given + "," + given + "]}");
  same("{\"$not\":{\"$not\":" + given + "}}");
  same("{\"$nor\":[{\"$nor\":[" + given + "]}]}");
  return 0;
}
