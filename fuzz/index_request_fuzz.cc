// A request of `_index`, the design document to which the index is added, and a document, in three lines.
#include "divan/mango/index_request.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/index/views/field_map.h"
#include "fuzz/check.h"

using divan::fuzz::answers;
using divan::fuzz::check;
using divan::mango::IndexRequest;
namespace json = divan::json;
namespace mango = divan::mango;

namespace {

// The next line of `text` as compact JSON; {} if there is none.
std::string take_line(std::string_view& text) {
  const auto line = std::min(text.find('\n'), text.size());
  std::string out = "{}";
  answers(400, [&] { out = json::compact(text.substr(0, line)); });
  text.remove_prefix(std::min(line + 1, text.size()));
  return out;
}

void check_rows(const IndexRequest& request, const std::string& document) {
  if (request.type != mango::IndexType::json) {
    check(json::member(request.definition, "index") && json::member(request.definition, "analyzer"));
    return;
  }
  const auto map = json::member(request.definition, "map");
  check(map.has_value());
  answers(413, [&] {
    const auto key = divan::index::views::FieldMap::parse(*map).key_of(document);
    check(!key || json::is_compact(*key));
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string_view text = divan::fuzz::text_of(data, size);
  const std::string given = take_line(text), body = take_line(text), document = take_line(text);
  answers(400, [&] { mango::parse_bulk_delete(given); });
  try {
    const auto request = IndexRequest::parse(given);
    check(request.design_document.starts_with("_design/"));
    if (document.starts_with('{')) check_rows(request, document);
    const auto fresh = request.add_to("{}");
    check(fresh && json::is_compact(*fresh));
    check(!request.add_to(*fresh));
    check(mango::without_index(*fresh, request.type, request.name) == "{}");
    if (!body.starts_with('{')) return 0;
    if (const auto changed = request.add_to(body)) check(json::is_compact(*changed));
  } catch (const divan::Error& error) {
    check(error.status() == 400 || error.status() == 503);  // invalid, or an index of Nouveau
  }
  return 0;
}
