#include "divan/index/views/view_kind.h"

#include <fmt/core.h>

#include "divan/base/json.h"
#include "divan/index/views/builtin_reduce.h"
#include "divan/index/views/field_mapper.h"
#include "divan/index/views/js_mapper.h"

namespace divan::index::views {
namespace {

Error invalid(const std::string& design_id, std::string_view what) {
  return {400, "invalid_design_doc", fmt::format("`{}` {}", design_id, what)};
}

// The language of a design document whose views are indexed; nullopt for other languages.
std::optional<std::string_view> language_of(const std::string& design_id, std::string_view body) {
  const auto member = json::member(body, "language");
  if (!member) return kJavaScript;
  const auto language = json::string_value(*member);
  if (!language) throw invalid(design_id, "`language` must be a string.");
  for (const auto known : {kJavaScript, kQueryLanguage}) {
    if (*language == known) return known;
  }
  return std::nullopt;
}

std::string string_member(const std::string& design_id, std::string_view object, std::string_view member) {
  const auto value = json::member(object, member);
  if (!value) return {};
  auto text = json::string_value(*value);
  if (!text) throw invalid(design_id, fmt::format("`{}` of a view must be a string.", member));
  return *std::move(text);
}

Collation collation_of(const std::string& design_id, std::string_view view) {
  const auto options = json::member(view, "options");
  if (!options) return Collation::unicode;
  if (!options->starts_with('{')) throw invalid(design_id, "`options` of a view must be an object.");
  return json::member(*options, "collation") == "\"raw\"" ? Collation::raw : Collation::unicode;
}

ViewOptions options_of(const std::string& design_id, std::string_view body, const docs::Database* database) {
  ViewOptions options;
  options.is_partitioned = database != nullptr && database->is_partitioned();
  const auto object = json::member(body, "options");
  if (!object) return options;
  if (!object->starts_with('{')) throw invalid(design_id, "`options` must be an object.");
  options.include_design = json::member(*object, "include_design") == "true";
  options.local_seq = json::member(*object, "local_seq") == "true";
  if (json::member(*object, "partitioned") == "false") options.is_partitioned = false;
  return options;
}

View parse_view(const std::string& design_id, std::string name, std::string_view json,
                std::string_view language) {
  if (!json.starts_with('{')) throw invalid(design_id, "a view must be an object.");
  View view{.name = std::move(name)};
  if (language == kQueryLanguage) {
    view.map = json::member(json, "map").value_or("");  // queries of Mango read rows, and do not reduce
  } else {
    view.map = string_member(design_id, json, "map");
    view.reduce = string_member(design_id, json, "reduce");
    view.collation = collation_of(design_id, json);
  }
  if (view.map.empty()) throw invalid(design_id, fmt::format("view `{}` has no map function.", view.name));
  return view;
}

// `views` are in the order of their numbers.
std::vector<FieldMap> field_maps(const std::string& design_id, const std::map<std::string, View>& views) {
  std::vector<FieldMap> maps;
  for (const auto& [name, view] : views) {
    try {
      maps.push_back(FieldMap::parse(view.map));
    } catch (const Error& error) {
      throw invalid(design_id, fmt::format("has an invalid index `{}`: {}", name, error.reason()));
    }
  }
  return maps;
}

}  // namespace

void check_language(std::string_view body, std::string_view view_name) {
  const auto language = json::string_value(json::member(body, "language").value_or(""));
  if (!language || *language == kJavaScript || *language == kQueryLanguage) return;
  bool found = false;
  json::for_each_member(json::member(body, "views").value_or("{}"),
                        [&](std::string_view raw, std::string_view) {
                          found = json::unescape(raw) == view_name;
                          return !found;
                        });
  if (found) throw Error(500, "unknown_query_language", *language);
}

std::shared_ptr<const ViewIndex> parse_views(const std::string& design_id, std::string_view body,
                                             js::Pool& pool, const js::Limits& limits, const FanOut& fan_out,
                                             const docs::Database* database,
                                             std::shared_ptr<SlowDocuments> slow) {
  const auto language = language_of(design_id, body);
  if (!language) return nullptr;
  const auto object = json::member(body, "views");
  if (!object) return nullptr;
  std::map<std::string, View> views;
  Origin origin{.owner = {.design_document = design_id}};
  if (database != nullptr) {
    origin.owner.database = database->name();
    origin.owner.number = database->number();
  }
  const bool is_object =
      json::for_each_member(*object, [&](std::string_view raw_name, std::string_view value) {
        std::string name = json::unescape(raw_name);
        if (name == "lib" && language == kJavaScript) {
          origin.lib = value;
        } else {
          views[name] = parse_view(design_id, name, value, *language);
        }
        return true;
      });
  if (!is_object) throw invalid(design_id, "`views` must be an object.");
  if (views.empty()) return nullptr;
  if (views.size() > js::protocol::kMaxFunctions) throw invalid(design_id, "there are too many views.");
  int number = 0;
  for (auto& [name, view] : views) view.number = number++;
  const auto options = options_of(design_id, body, database);
  origin.is_partitioned = options.is_partitioned;
  auto signature = signature_of(views, *language, origin.lib, options);
  std::shared_ptr<const Mapper> mapper;
  if (language == kJavaScript) {
    mapper = std::make_shared<JsMapper>(origin, views, signature, pool, std::move(slow));
  } else {
    mapper = std::make_shared<FieldMapper>(field_maps(design_id, views));
  }
  return std::make_shared<ViewIndex>(std::move(origin), std::move(views), options,
                                     builds_itself(body, "views"), std::move(signature), std::move(mapper),
                                     pool, limits, fan_out);
}

std::vector<IndexPtr> ViewKind::indexes(const std::string& design_id, std::string_view body,
                                        const docs::Database* database) const {
  if (auto index = parse_views(design_id, body, pool_, limits_, fan_out_, database, slow_))
    return {std::move(index)};
  return {};
}

void ViewKind::check(const std::string& design_id, std::string_view body,
                     const docs::Checkpoint& checkpoint) const {
  const auto index = parse_views(design_id, body, pool_, limits_, fan_out_);
  if (!index) return;
  for (const auto& [name, view] : index->views()) {
    if (checkpoint) checkpoint();
    if (index->mapper().language() == kJavaScript)
      pool_.check({name, view.map}, fmt::format("map function in the '{}' view", name),
                  index->origin().root());
    if (view.reduce.empty() || builtin_reduce(view.reduce)) continue;
    if (view.reduce.starts_with('_'))
      throw Error(400, "invalid_design_doc", invalid_builtin_reason(view.reduce));
    if (checkpoint) checkpoint();
    pool_.check({name, view.reduce}, fmt::format("reduce function in the '{}' view", name));
  }
}

}  // namespace divan::index::views
