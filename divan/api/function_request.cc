#include "divan/api/function_request.h"

#include <algorithm>
#include <array>

#include "divan/api/database_access.h"
#include "divan/api/validations.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/http/url.h"

namespace divan::api {
namespace {

constexpr std::array<std::string_view, 4> kCredentials = {"Authorization", "Cookie", "X-Auth-CouchDB-Token",
                                                          "Proxy-Authorization"};

bool has_credentials(std::string_view field) {
  return std::ranges::any_of(kCredentials,
                             [&](std::string_view name) { return http::equal_ignoring_case(field, name); });
}

// Bytes that a function receives as text: what is not UTF-8 is replaced.
std::string text_of(std::string_view bytes) {
  std::string text(bytes);
  if (is_utf8(bytes)) return text;
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return text;
}

// CouchDB parses the values of these parameters.
bool is_json_parameter(std::string_view name) {
  return name == "startkey" || name == "endkey" || name == "key" || name == "descending";
}

void write_query(json::Writer& writer, const std::vector<http::QueryParameter>& parameters) {
  writer.begin_object();
  for (const auto& [name, value] : parameters) {
    writer.key(text_of(name));
    std::optional<std::string> parsed;
    if (is_json_parameter(name)) {
      try {
        parsed = json::compact(value);
      } catch (const Error&) { throw bad_request("invalid UTF-8 JSON"); }
    }
    parsed ? writer.raw(*parsed) : writer.string(text_of(value));
  }
  writer.end_object();
}

void write_path(json::Writer& writer, const std::vector<std::string>& path) {
  writer.begin_array();
  for (const auto& segment : path) writer.string(text_of(segment));
  writer.end_array();
}

void write_form(json::Writer& writer, Call& call) {
  const auto type = call.header("Content-Type").value_or("");
  const bool is_form = type.starts_with("application/x-www-form-urlencoded") &&
                       (call.method() == "POST" || call.method() == "PUT");
  write_query(writer, is_form ? http::parse_query(call.body()) : std::vector<http::QueryParameter>());
}

// What all kinds of requests have.
void write_common(json::Writer& writer, kv::Transaction& tx, const docs::Database& database, Call& call,
                  std::string_view body = {}) {
  const auto& request = call.request();
  writer.key("method").string(request.method());
  writer.key("path");
  write_path(writer, call.path());
  writer.key("requested_path");
  write_path(writer, call.path());
  writer.key("raw_path").string(text_of(request.target()));
  writer.key("query");
  write_query(writer, call.params());
  writer.key("body");
  if (!body.empty()) {
    writer.raw(body);
  } else {
    writer.string(call.has_body() ? text_of(call.body()) : "undefined");
  }
  writer.key("userCtx").raw(user_context(database.name(), call.user()));
  writer.key("secObj").raw(read_security(tx, database));
}

// A field's name as CouchDB's functions see it: "Content-Type", however the client writes it.
std::string canonical_name(std::string_view name) {
  std::string text = text_of(name);
  bool begins = true;
  for (char& c : text) {
    const bool is_other_case = begins ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
    if (is_other_case) c = static_cast<char>(c ^ 0x20);
    begins = c == '-';
  }
  return text;
}

// What identifies the client and the connection.
void write_origin(json::Writer& writer, const http::Request& request) {
  writer.key("headers").begin_object();
  for (const auto& [name, value] : request.headers()) {
    if (!has_credentials(name)) writer.key(canonical_name(name)).string(text_of(value));
  }
  writer.end_object();
  writer.key("peer").string(request.peer());
  writer.key("cookie").begin_object().end_object();
}

void write_info(json::Writer& writer, kv::Transaction& tx, const docs::Database& database) {
  const auto info = docs::read_info(tx, database);
  writer.begin_object().key("db_name").string(database.name());
  writer.key("doc_count").number(info.doc_count).key("doc_del_count").number(info.doc_del_count);
  writer.key("update_seq").string(docs::to_sequence(info.update_seq));
  writer.end_object();
}

}  // namespace

std::string filter_request(kv::Transaction& tx, const docs::Database& database, Call& call) {
  std::string json;
  json::Writer writer(json);
  writer.begin_object();
  writer.key("info").begin_object().key("db_name").string(database.name()).end_object();
  writer.key("id").null();
  write_common(writer, tx, database, call);
  writer.key("form");
  write_form(writer, call);
  writer.key("headers").begin_object().end_object().key("cookie").begin_object().end_object();
  writer.end_object();
  return json;
}

std::string function_request(const Context& context, kv::Transaction& tx, const docs::Database& database,
                             Call& call, const std::string& id, std::string_view body) {
  std::string json;
  json::Writer writer(json);
  writer.begin_object().key("info");
  write_info(writer, tx, database);
  writer.key("uuid").string(context.rng.uuid()).key("id");
  id.empty() ? writer.null() : writer.string(id);
  write_common(writer, tx, database, call, body);
  writer.key("form");
  write_form(writer, call);
  write_origin(writer, call.request());
  writer.end_object();
  return json;
}

std::string rewrite_request(kv::Transaction& tx, const docs::Database& database, Call& call) {
  std::string json;
  json::Writer writer(json);
  writer.begin_object();
  write_common(writer, tx, database, call);
  write_origin(writer, call.request());
  writer.end_object();
  return json;
}

std::string function_document(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                              std::string* revision) {
  if (docs::document_id_error(id)) return "null";
  const auto tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
  if (tree.empty() || tree.front().deleted) return "null";
  if (revision != nullptr) *revision = tree.front().revision().to_string();
  std::string document;
  docs::append_document(document, id, tree.front(), docs::read_body(tx, database, tree.front()), tree,
                        {.revs = true, .conflicts = true});
  return document;
}

}  // namespace divan::api
