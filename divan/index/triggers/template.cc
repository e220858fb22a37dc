#include "divan/index/triggers/template.h"

#include <fmt/core.h>

#include "divan/base/json.h"

namespace divan::index::triggers {
namespace {

bool is_scalar(std::string_view value) { return value[0] != '{' && value[0] != '[' && value != "null"; }

// What a string has between its quotes.
std::string escaped(std::string_view text) {
  const std::string quoted = json::quoted(text);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

Template Template::parse(std::string_view json) {
  Template parsed;
  parsed.add_value(json);
  parsed.is_text_ = json[0] == '"';
  return parsed;
}

void Template::add_literal(std::string_view json) {
  if (pieces_.empty() || !pieces_.back().path.empty()) pieces_.emplace_back();
  pieces_.back().literal += json;
}

void Template::add_value(std::string_view json) {
  if (json.empty()) throw bad_request("A template must be JSON.");
  std::string_view separator;
  switch (json[0]) {
    case '"': return add_string(json.substr(1, json.size() - 2));
    case '{':
      add_literal("{");
      json::for_each_member(json, [&](std::string_view raw_name, std::string_view value) {
        add_literal(fmt::format("{}\"{}\":", separator, raw_name));
        add_value(value);
        separator = ",";
        return true;
      });
      return add_literal("}");
    case '[':
      add_literal("[");
      json::for_each_element(json, [&](std::string_view value) {
        add_literal(separator);
        add_value(value);
        separator = ",";
        return true;
      });
      return add_literal("]");
    default: return add_literal(json);
  }
}

void Template::add_string(std::string_view raw) {
  const std::string text = json::unescape(raw);
  std::vector<Piece> pieces;
  std::string literal;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("{{") || rest.starts_with("}}")) {
      literal += text[i];
      i += 2;
    } else if (text[i] == '}') {
      throw bad_request(fmt::format("The template `{}` has a `}}` without a `{{`; expected `}}}}`.", text));
    } else if (text[i] == '{') {
      const std::size_t end = rest.find('}');
      if (end == std::string_view::npos)
        throw bad_request(fmt::format("The template `{}` has a `{{` without a `}}`; expected `{{{{`.", text));
      if (!literal.empty()) pieces.push_back({.literal = std::exchange(literal, {})});
      const std::string_view field = rest.substr(1, end - 1);
      if (++placeholders_ > kMaxPlaceholders)
        throw bad_request(fmt::format("There are more than {} placeholders.", kMaxPlaceholders));
      pieces.push_back({.literal = std::string(field), .path = selector::parse_path(field)});
      i += end + 1;
    } else {
      literal += text[i++];
    }
  }
  if (!literal.empty() || pieces.empty()) pieces.push_back({.literal = std::move(literal)});
  if (pieces.size() == 1 && !pieces.front().path.empty()) {
    pieces.front().is_value = true;
    pieces_.push_back(std::move(pieces.front()));
    return;
  }
  add_literal("\"");
  for (Piece& piece : pieces) {
    if (piece.path.empty()) {
      add_literal(escaped(piece.literal));
    } else {
      pieces_.push_back(std::move(piece));
    }
  }
  add_literal("\"");
}

std::string Template::fill(std::string_view document, std::size_t max_bytes) const {
  std::string out;
  for (const Piece& piece : pieces_) {
    if (piece.path.empty()) {
      out += piece.literal;
      continue;
    }
    const auto value = selector::find_field(piece.path, document);
    if (!value) throw FieldMissing(fmt::format("The document has no field `{}`.", piece.literal));
    if (!piece.is_value && !is_scalar(*value)) {
      throw FieldMissing(fmt::format(
          "The field `{}` is part of a text; expected a string, a number or a boolean.", piece.literal));
    }
    out += !piece.is_value && value->front() == '"' ? value->substr(1, value->size() - 2) : *value;
    if (out.size() > max_bytes)
      throw bad_request(fmt::format("The template exceeds {} bytes with this document.", max_bytes));
  }
  return out;
}

std::string Template::fill_text(std::string_view document, std::size_t max_bytes) const {
  const std::string json = fill(document, max_bytes);
  if (auto text = json::string_value(json)) return *std::move(text);
  if (!is_scalar(json)) {
    throw FieldMissing(fmt::format("The field `{}` must be a string, a number or a boolean.",
                                   pieces_.empty() ? "" : pieces_.front().literal));
  }
  return json;
}

}  // namespace divan::index::triggers
