#include "divan/docs/design_document.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/json_members.h"

namespace divan::docs {
namespace {

struct Type {
  std::string_view name;          // in CouchDB's messages
  std::string_view first_letter;  // its JSON begins with one of these
};

constexpr Type kObject{"object", "{"};
constexpr Type kString{"string", "\""};
constexpr Type kBoolean{"boolean", "tf"};
constexpr Type kFunctions{"string or object", "\"{"};
constexpr Type kValidation{"object or string", "\"{"};
constexpr Type kRewrites{"array or string", "\"["};

constexpr std::string_view kAny = "*";

struct Step {
  std::string_view member;  // or kAny
  Type type;
};

Error invalid(std::string reason) { return {400, "invalid_design_doc", std::move(reason)}; }

// Follows the path from `object` as far as its members exist. `prefix` is the path to `object`.
void check_path(std::string_view object, std::span<const Step> path, const std::string& prefix) {
  if (path.empty()) return;
  const Step& step = path.front();
  json::for_each_member(object, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    if (step.member != kAny && step.member != name) return true;
    const std::string here = prefix + name;
    if (step.type.first_letter.find(value.front()) == std::string_view::npos)
      throw invalid(fmt::format("`{}` field must have {} type", here, step.type.name));
    check_path(value, path.subspan(1), here + ".");
    return true;
  });
}

void check_that_views_map(std::string_view views) {
  json::for_each_member(views, [](std::string_view raw_name, std::string_view view) {
    const std::string name = json::unescape(raw_name);
    if (name != "lib" && !json::member(view, "map"))
      throw invalid(fmt::format("View `{}` must contain map function", name));
    return true;
  });
}

}  // namespace

void check_design_members(std::string_view body) {
  // Mango stores its indexes as views whose map is an object.
  const Type map = json::member(body, "language") == "\"query\"" ? kObject : kString;
  // In the order in which CouchDB checks, since it reports the first error.
  const std::vector<std::vector<Step>> paths = {
      {{"filters", kObject}, {kAny, kFunctions}},
      {{"language", kString}},
      {{"lists", kObject}, {kAny, kFunctions}},
      {{"options", kObject}, {"include_design", kBoolean}},
      {{"options", kObject}, {"local_seq", kBoolean}},
      {{"options", kObject}, {"partitioned", kBoolean}},
      {{"rewrites", kRewrites}},
      {{"shows", kObject}, {kAny, kFunctions}},
      {{"st_indexes", kObject}, {kAny, kObject}, {"index", kString}},
      {{"updates", kObject}, {kAny, kFunctions}},
      {{"validate_doc_update", kValidation}},
      {{"views", kObject}, {"lib", kObject}},
      {{"views", kObject}, {kAny, kObject}, {"map", map}},
      {{"views", kObject}, {kAny, kObject}, {"reduce", kString}},
  };
  for (const auto& path : paths) check_path(body, path, "");
  if (const auto views = json::member(body, "views")) check_that_views_map(*views);
}

void check_is_not_partitioned(std::string_view body) {
  const auto options = json::member(body, "options");
  if (options && json::member(*options, "partitioned") == "true")
    throw invalid("partitioned option cannot be true in a non-partitioned database.");
}

void check_validation_language(std::string_view id, std::string_view body) {
  const auto members = json::members_of(body);
  const auto function = json::find(members, "validate_doc_update");
  if (!function) return;
  const auto language = json::find(members, "language").value_or("\"javascript\"");
  if (function->starts_with('"') && language == "\"javascript\"") return;
  throw Error(
      501, "not_implemented",
      fmt::format("`validate_doc_update` of `{}` is not a function in JavaScript, and would not be run: "
                  "documents would be written without being validated.",
                  id));
}

}  // namespace divan::docs
