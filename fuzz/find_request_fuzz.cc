// A request of `_find` and a document, in two lines: an error, or ranges and fields that agree with what the
// selector matches. Any text as a bookmark.
#include "divan/mango/find_request.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/collation/collation.h"
#include "divan/mango/bookmark.h"
#include "divan/mango/projection.h"
#include "divan/mango/range.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
using divan::mango::FindRequest;
namespace collation = divan::collation;
namespace json = divan::json;
namespace mango = divan::mango;
namespace selector = divan::selector;

namespace {

void check_bookmark(std::string_view text) {
  answers(400, [&] {
    const auto bookmark = mango::Bookmark::decode(text);
    const auto again = mango::Bookmark::decode(bookmark.encode());
    check(again.key == bookmark.key && again.id == bookmark.id);
  });
}

// The document matches.
void check_ranges(const selector::Condition& condition, std::string_view document) {
  for (const auto& [field, range] : mango::ranges_of(condition)) {
    check(!range.is_empty);
    const auto value = selector::find_field(field, document);
    if (range.low || range.high) check(value.has_value());
    if (!value) continue;
    const bool is_id = field == selector::Path{"_id"};
    const auto key =
        collation::encode_key(*value, is_id ? collation::Collation::raw : collation::Collation::unicode);
    check(!range.low || (range.low->inclusive ? range.low->key <= key : range.low->key < key));
    check(!range.high || (range.high->inclusive ? key <= range.high->key : key < range.high->key));
  }
  for (const auto& field : mango::fields_of(condition)) {
    if (mango::requires_fields(condition, {field})) check(selector::find_field(field, document).has_value());
  }
}

void check_projection(const std::vector<std::string>& fields, std::string_view document) {
  std::string projected;
  mango::Projection(fields).append(document, projected);
  check(json::is_compact(projected));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  check_bookmark(text);
  const auto line = std::min(text.find('\n'), text.size());
  std::string given, document;
  if (!answers(400, [&] { given = json::compact(text.substr(0, line)); })) return 0;
  if (!answers(400, [&] { document = json::compact(text.substr(std::min(line + 1, text.size()))); }))
    return 0;
  if (!document.starts_with('{')) document = "{}";
  answers(400, [&] {
    const auto request = FindRequest::parse(given);
    const auto& condition = request.selector.condition();
    if (!request.use_index.empty()) check(request.wanted_design().starts_with("_design/"));
    if (request.fields) check_projection(*request.fields, document);
    bool matches = false;
    const auto has_text = [](const selector::Condition& text) { return text.text.size() % 2 == 0; };
    if (!answers(413, [&] { matches = request.selector.matches(document, has_text); })) return;
    if (matches) check_ranges(condition, document);
    // The normal form means the same.
    std::string normal;
    selector::append_selector(normal, condition);
    bool same = matches;
    const auto test_again = [&] {
      same = selector::Selector::parse(normal, selector::TextOperator::allowed).matches(document, has_text);
    };
    if (!answers(400, test_again)) return;
    check(same == matches);
  });
  return 0;
}
