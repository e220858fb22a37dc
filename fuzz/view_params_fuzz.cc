// Parameters of a view, from a URL's query or, if it begins with a brace, from a request's body: a client
// error, or parameters whose keys are JSON.
#include "divan/base/json.h"
#include "divan/collation/collation.h"
#include "divan/http/url.h"
#include "divan/index/views/params.h"
#include "fuzz/check.h"

namespace {

namespace json = divan::json;
namespace collation = divan::collation;
namespace views = divan::index::views;
using divan::fuzz::answers;
using divan::fuzz::check;

void check_key(const std::optional<std::string>& key) {
  if (key) check(json::compact(*key) == *key);
}

void check_params(const views::ViewParams& params) {
  for (const auto& key : {params.start_key, params.end_key}) check_key(key);
  if (params.keys) {
    for (const auto& key : *params.keys) check_key(key);
  }
  for (const bool view_reduces : {false, true}) {
    const auto collation = view_reduces ? collation::Collation::raw : collation::Collation::unicode;
    if (!answers(400, [&] { views::check_params(params, view_reduces, collation); })) continue;
    if (params.reduce.value_or(false)) check(views::reduces(params, view_reduces));
    if (!params.start_key || !params.end_key) continue;
    const bool upwards = collation::encode_key(*params.start_key, collation) <=
                         collation::encode_key(*params.end_key, collation);
    check(upwards || params.descending);
  }
}

// A query and a body with the same parameters must be equivalent.
void check_as_body(const std::vector<divan::http::QueryParameter>& query, const views::ViewParams& params) {
  std::string body;
  json::Writer writer(body);
  writer.begin_object();
  for (const auto& parameter : query) {
    const bool is_key = parameter.name.find("key") != std::string::npos && !parameter.name.ends_with("id");
    std::string key;
    if (is_key && !answers(400, [&] { key = json::compact(parameter.value); })) return;
    writer.key(parameter.name);
    is_key ? writer.raw(key) : writer.string(parameter.value);
  }
  writer.end_object();
  views::ViewParams again;
  views::set_params_from_body(again, body);
  check(again.keys == params.keys && again.start_key == params.start_key);
  check(again.end_key == params.end_key && again.start_key_doc_id == params.start_key_doc_id);
  check(again.skip == params.skip && again.limit == params.limit && again.reduce == params.reduce);
  check(again.group == params.group && again.group_level == params.group_level);
  check(again.update == params.update && again.descending == params.descending);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text = divan::fuzz::text_of(data, size);
  views::ViewParams params;
  if (text.starts_with('{')) {
    if (answers(400, [&] { views::set_params_from_body(params, text); })) check_params(params);
    return 0;
  }
  std::vector<divan::http::QueryParameter> query;
  if (!answers(400, [&] { query = divan::http::parse_query(text); })) return 0;
  for (const auto& [name, value] : query) {
    if (!divan::is_utf8(name) || !divan::is_utf8(value)) return 0;
  }
  const bool taken = answers(400, [&] {
    for (const auto& [name, value] : query) views::set_param(params, name, value);
  });
  if (!taken) return 0;
  check_params(params);
  check_as_body(query, params);
  return 0;
}
