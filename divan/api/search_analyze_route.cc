// /_search_analyze: the tokens that an analyzer of full text makes of a text.
// https://docs.couchdb.org/en/stable/api/server/common.html#search-analyze
#include <fmt/core.h>

#include "divan/api/routes.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/text/analyzer.h"

namespace divan::api {
namespace {

// Bytes: a request thread does the work.
constexpr std::size_t kMaxAnalyzedText = 64 << 10;

struct AnalyzeRequest {
  std::string analyzer;  // JSON
  std::string text;
};

AnalyzeRequest parse_query(const Call& call) {
  const auto analyzer = call.param("analyzer");
  if (!analyzer) throw bad_request("analyzer parameter is mandatory");
  const auto text = call.param("text");
  if (!text) throw bad_request("text parameter is mandatory");
  if (!is_utf8(*analyzer)) throw bad_request("analyzer parameter must be a string or an object");
  return {json::quoted(*analyzer), *text};
}

AnalyzeRequest parse_body(Call& call) {
  const std::string body = call.json_body();
  if (!body.starts_with('{')) throw bad_request("Request body must be a JSON object");
  const auto analyzer = json::member(body, "analyzer");
  if (!analyzer) throw bad_request("analyzer parameter is mandatory");
  if (!analyzer->starts_with('"') && (!analyzer->starts_with('{') || *analyzer == "{}"))
    throw bad_request("analyzer parameter must be a string or an object");
  const auto text = json::member(body, "text");
  if (!text) throw bad_request("text parameter is mandatory");
  auto decoded = json::string_value(*text);
  if (!decoded) throw bad_request("text parameter must be a string");
  return {std::string(*analyzer), std::move(*decoded)};
}

}  // namespace

RouteResult search_analyze(const Context& /*context*/, const CallPtr& call) {
  call->allow("GET,POST");
  const auto request = call->method() == "POST" ? parse_body(*call) : parse_query(*call);
  const auto analyzer = text::make_analyzer(request.analyzer);
  if (request.text.size() > kMaxAnalyzedText) {
    throw Error(
        413, "too_large",
        fmt::format("The text has {} bytes; expected at most {}.", request.text.size(), kMaxAnalyzedText));
  }
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("tokens").begin_array();
  analyzer->analyze(request.text, [&](const text::Token& token) { writer.string(token.term); });
  writer.end_array().end_object();
  return json_response(200, std::move(out));
}

}  // namespace divan::api
