#include "divan/functions/design_function.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "divan/base/digest.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"
#include "divan/docs/attachment.h"

namespace divan::functions {
namespace {

std::string_view member_of(std::string_view object, std::string_view name) {
  const auto value = json::find(json::members_of(object), name);
  if (!value) throw not_found(fmt::format("missing json key: {}", name));
  return *value;
}

}  // namespace

js::Program design_function(const js::Owner& owner, std::string_view body,
                            std::span<const std::string> path) {
  const auto language =
      json::string_value(json::find(json::members_of(body), "language").value_or("\"javascript\""));
  if (language != "javascript") throw Error(500, "unknown_query_language", language.value_or("undefined"));
  std::string_view value = body;
  for (const auto& name : path) value = member_of(value, name);
  const std::string name = fmt::format("{}", fmt::join(path, "/"));
  const auto source = json::string_value(value);
  if (!source) throw not_found(fmt::format("`{}` is not a function.", name));
  js::Program program;
  program.root = docs::without_attachments(body);
  program.functions.push_back({name, *source, owner});
  program.id = sha256(json::quoted(name) + program.root);
  return program;
}

js::Owner owner_of(const docs::Database& database, std::string_view design_id) {
  return {database.name(), database.number(), std::string(design_id)};
}

}  // namespace divan::functions
