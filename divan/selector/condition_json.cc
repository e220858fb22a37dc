#include <string_view>
#include <utility>

#include "divan/base/json.h"
#include "divan/selector/condition.h"

namespace divan::selector {
namespace {

std::string_view name_of(Operator op) {
  switch (op) {
    case Operator::all_of: return "$and";
    case Operator::any_of: return "$or";
    case Operator::none_of: return "$not";
    case Operator::less: return "$lt";
    case Operator::less_or_equal: return "$lte";
    case Operator::equal: return "$eq";
    case Operator::not_equal: return "$ne";
    case Operator::greater_or_equal: return "$gte";
    case Operator::greater: return "$gt";
    case Operator::in: return "$in";
    case Operator::not_in: return "$nin";
    case Operator::exists: return "$exists";
    case Operator::type: return "$type";
    case Operator::mod: return "$mod";
    case Operator::regex: return "$regex";
    case Operator::begins_with: return "$beginsWith";
    case Operator::all: return "$all";
    case Operator::size: return "$size";
    case Operator::elem_match: return "$elemMatch";
    case Operator::all_match: return "$allMatch";
    case Operator::key_map_match: return "$keyMapMatch";
    case Operator::text: return "$text";
    case Operator::always: break;
  }
  return "";
}

void append(json::Writer& writer, const Condition& condition) {
  writer.begin_object();
  if (condition.op == Operator::always) {
    writer.end_object();
    return;
  }
  const std::string_view name = name_of(condition.op);
  if (condition.op == Operator::all_of || condition.op == Operator::any_of) {
    writer.key(name).begin_array();
    for (const auto& child : condition.children) append(writer, child);
    writer.end_array().end_object();
    return;
  }
  if (condition.op == Operator::none_of) {
    append(writer.key(name), condition.children[0]);
    writer.end_object();
    return;
  }
  const bool is_on_field = !condition.path.empty();
  if (is_on_field) writer.key(to_field(condition.path)).begin_object();
  if (condition.op == Operator::text) writer.key("$default").begin_object();
  if (condition.negated) writer.key("$not").begin_object();
  writer.key(name);
  if (condition.children.empty()) {
    writer.raw(condition.argument);
  } else {
    append(writer, condition.children[0]);
  }
  if (condition.negated) writer.end_object();
  if (is_on_field || condition.op == Operator::text) writer.end_object();
  writer.end_object();
}

}  // namespace

void append_selector(std::string& out, const Condition& condition) {
  json::Writer writer(out);
  append(writer, condition);
}

}  // namespace divan::selector
