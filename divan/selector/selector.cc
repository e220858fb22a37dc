#include "divan/selector/selector.h"

#include <algorithm>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/collation/collation.h"
#include "divan/selector/condition.h"

namespace divan::selector {
namespace {

// What encode_key() costs for a byte: ICU's sort keys of strings take long.
constexpr std::size_t kKeyCost = 32;
// What a document may cost: kBudgetFactor times its size, and this for a small one.
constexpr std::size_t kBudgetFactor = 16;
constexpr std::size_t kLeastBudget = 1 << 20;

std::string key_of(const Condition& condition, std::string_view value, Budget& budget) {
  budget.take(kKeyCost * value.size());
  return collation::encode_key(value, condition.collation);
}

// Finds the field in `value`, which becomes the field's.
Step find(const Path& path, std::string_view& value, Budget& budget) {
  for (const auto& name : path) {
    budget.take(value.size());
    if (const Step step = step_into(value, name); step != Step::found) return step;
  }
  return Step::found;
}

template <class Test>
bool any_element(std::string_view array, const Test& test) {
  bool found = false;
  json::for_each_element(array, [&](std::string_view one) {
    found = test(one);
    return !found;
  });
  return found;
}

template <class Test>
bool any_name(std::string_view object, const Test& test) {
  bool found = false;
  json::for_each_member(object, [&](std::string_view name, std::string_view) {
    // With the quotes around it, which are part of the text.
    found = test(std::string_view(name.data() - 1, name.size() + 2));
    return !found;
  });
  return found;
}

bool is_array(std::string_view value) { return value.starts_with('['); }

bool is_in(const Condition& condition, std::string_view value, Budget& budget) {
  const auto equals_one = [&](std::string_view one) {
    return std::ranges::binary_search(condition.keys, key_of(condition, one, budget));
  };
  return is_array(value) ? any_element(value, equals_one) : equals_one(value);
}

bool has_all(const Condition& condition, std::string_view value, Budget& budget) {
  if (!is_array(value) || condition.values.empty()) return false;
  if (!condition.text.empty() && condition.text == value) return true;
  return std::ranges::all_of(condition.values, [&](const std::string& wanted) {
    budget.take(value.size());
    return any_element(value, [&](std::string_view one) { return one == wanted; });
  });
}

bool has_size(std::string_view value, std::int64_t size) {
  if (!is_array(value)) return false;
  std::int64_t count = 0;
  json::for_each_element(value, [&](std::string_view) { return ++count <= size; });
  return count == size;
}

// https://docs.couchdb.org/en/stable/api/database/find.html#condition-operators
bool test(const Condition& condition, std::string_view value, Budget& budget) {
  budget.take(value.size());
  switch (condition.op) {
    case Operator::less: return key_of(condition, value, budget) < condition.keys[0];
    case Operator::less_or_equal: return key_of(condition, value, budget) <= condition.keys[0];
    case Operator::equal: return key_of(condition, value, budget) == condition.keys[0];
    case Operator::not_equal: return key_of(condition, value, budget) != condition.keys[0];
    case Operator::greater_or_equal: return key_of(condition, value, budget) >= condition.keys[0];
    case Operator::greater: return key_of(condition, value, budget) > condition.keys[0];
    case Operator::in: return is_in(condition, value, budget);
    case Operator::not_in: return !is_in(condition, value, budget);
    case Operator::exists: return condition.exists;
    case Operator::type: return type_of(value) == condition.text;
    case Operator::size: return has_size(value, condition.number);
    case Operator::all: return has_all(condition, value, budget);
    case Operator::mod: {
      const auto number = json::int_value(value);
      // The remainder of the least number by -1 overflows.
      return number && (condition.divisor == -1 ? 0 : *number % condition.divisor) == condition.number;
    }
    case Operator::regex: {
      const auto text = json::string_value(value);
      return text && re2::RE2::PartialMatch(*text, *condition.pattern);
    }
    case Operator::begins_with: {
      const auto text = json::string_value(value);
      return text && text->starts_with(condition.text);
    }
    case Operator::elem_match:
      return is_array(value) && any_element(value, [&](std::string_view one) {
               return matches(condition.children[0], one, budget, {});
             });
    case Operator::all_match:
      return is_array(value) && value != "[]" && !any_element(value, [&](std::string_view one) {
               return !matches(condition.children[0], one, budget, {});
             });
    case Operator::key_map_match:
      return value.starts_with('{') && any_name(value, [&](std::string_view name) {
               return matches(condition.children[0], name, budget, {});
             });
    case Operator::always:
    case Operator::all_of:
    case Operator::any_of:
    case Operator::none_of:
    case Operator::text: break;
  }
  return true;
}

}  // namespace

std::string_view type_of(std::string_view value) {
  switch (value.front()) {
    case 'n': return "null";
    case 't':
    case 'f': return "boolean";
    case '"': return "string";
    case '[': return "array";
    case '{': return "object";
    default: return "number";
  }
}

void Budget::take(std::size_t bytes) {
  if (bytes > left_)
    throw Error(413, "selector_too_expensive", "The selector takes too long for a document.");
  left_ -= bytes;
}

bool matches(const Condition& condition, std::string_view value, Budget& budget, const TextTest& has_text) {
  const auto matches_child = [&](const Condition& child) { return matches(child, value, budget, has_text); };
  switch (condition.op) {
    case Operator::always: return true;
    case Operator::all_of: return std::ranges::all_of(condition.children, matches_child);
    // As in CouchDB, a list of no conditions is true.
    case Operator::any_of:
      return condition.children.empty() || std::ranges::any_of(condition.children, matches_child);
    case Operator::none_of: return !matches_child(condition.children[0]);
    case Operator::text: return has_text(condition);
    default: break;
  }
  const Step last = find(condition.path, value, budget);
  if (last == Step::found) return test(condition, value, budget) != condition.negated;
  return last == Step::no_member && condition.op == Operator::exists && !condition.exists;
}

Selector Selector::parse(std::string_view json, TextOperator text_operator) {
  return Selector(std::make_shared<const Condition>(parse_condition(json, text_operator)));
}

bool Selector::matches(std::string_view document, const TextTest& has_text) const {
  Budget budget(kLeastBudget + kBudgetFactor * document.size());
  return selector::matches(*root_, document, budget, has_text);
}

}  // namespace divan::selector
