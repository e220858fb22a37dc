#include "divan/selector/condition.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/collation/collation.h"

namespace divan::selector {
namespace {

using collation::encode_key;

// Bytes of an argument that an error shows.
constexpr std::size_t kMaxShown = 200;
// Memory of a compiled regular expression.
constexpr std::int64_t kMaxPatternMemory = 1 << 20;

Error bad_argument(std::string_view name, std::string_view json) {
  return {400, "bad_arg", fmt::format("Bad argument for operator {}: {}", name, json.substr(0, kMaxShown))};
}

bool is_object(std::string_view json) { return json.starts_with('{'); }
bool is_array(std::string_view json) { return json.starts_with('['); }

// As in CouchDB, ids are ordered by their bytes.
collation::Collation collation_of(const Path& path) {
  return path == Path{"_id"} ? collation::Collation::raw : collation::Collation::unicode;
}

struct Comparison {
  std::string_view name;
  Operator op;
  Operator negation;
};
constexpr std::array<Comparison, 6> kComparisons = {{
    {"$lt", Operator::less, Operator::greater_or_equal},
    {"$lte", Operator::less_or_equal, Operator::greater},
    {"$eq", Operator::equal, Operator::not_equal},
    {"$ne", Operator::not_equal, Operator::equal},
    {"$gte", Operator::greater_or_equal, Operator::less},
    {"$gt", Operator::greater, Operator::less_or_equal},
}};

class Parser {
 public:
  explicit Parser(TextOperator text_operator) : text_operator_(text_operator) {}

  // A condition on the field `path`; `negated`: the opposite.
  Condition parse(std::string_view json, const Path& path, bool negated) {
    if (++conditions_ > kMaxConditions)
      throw Error(400, "invalid_selector",
                  fmt::format("The selector has more than {} conditions.", kMaxConditions));
    using Member = std::pair<std::string, std::string_view>;
    std::vector<Member> members;
    if (is_object(json)) {
      json::for_each_member(json, [&](std::string_view name, std::string_view value) {
        auto unescaped = json::unescape(name);
        const auto same = std::ranges::find(members, unescaped, &Member::first);
        if (same != members.end()) {  // the last one counts
          same->second = value;
        } else {
          members.emplace_back(std::move(unescaped), value);
        }
        return true;
      });
    }
    // An empty object, too, is a value.
    if (members.empty()) return comparison(negated ? Operator::not_equal : Operator::equal, json, path);
    if (members.size() == 1)
      return parse_member(members.front().first, members.front().second, path, negated);
    Condition all{.op = negated ? Operator::any_of : Operator::all_of};
    for (const auto& [name, value] : members)
      all.children.push_back(parse_member(name, value, path, negated));
    return all;
  }

 private:
  Condition parse_member(const std::string& name, std::string_view value, const Path& path, bool negated) {
    if (name == "$and" || name == "$or" || name == "$nor") {
      const bool is_and = name == "$and";
      const bool is_literal_nor = literal_ && name == "$nor";
      if (name == "$nor" && !literal_) negated = !negated;
      Condition combined{.op = is_and != negated ? Operator::all_of : Operator::any_of};
      for_each(name, value,
               [&](std::string_view one) { combined.children.push_back(parse(one, path, negated)); });
      return is_literal_nor ? none_of(std::move(combined)) : combined;
    }
    if (name == "$not") {
      if (!is_object(value)) throw bad_argument(name, value);
      if (literal_) return none_of(parse(value, path, false));
      return parse(value, path, !negated);
    }
    if (name == "$text" && text_operator_ == TextOperator::allowed) return parse_text(value, path, negated);
    // In this form CouchDB's normal form has it.
    if (const auto text = name == "$default" ? json::member(value, "$text") : std::nullopt;
        text && value == fmt::format(R"({{"$text":{}}})", *text))
      return parse_member("$text", *text, path, negated);
    if (name.starts_with('$')) return parse_operator(name, value, path, negated);
    // CouchDB stores partial filters with this name for the value itself.
    if (name.empty() && literal_) return parse(value, path, negated);
    Path below = path;
    for (auto& part : parse_path(name)) below.push_back(std::move(part));
    check_length(below);
    return parse(value, below, negated);
  }

  static Condition none_of(Condition condition) {
    Condition none{.op = Operator::none_of};
    none.children.push_back(std::move(condition));
    return none;
  }

  Condition parse_text(std::string_view value, const Path& path, bool negated) const {
    if (negated) throw bad_argument("$not", fmt::format(R"({{"$text":{}}})", value));
    if (literal_ || !path.empty())
      throw Error(400, "invalid_selector", "$text applies to the whole document, and not to a field.");
    if (is_object(value) || is_array(value) || value == "null") throw bad_argument("$text", value);
    return {.op = Operator::text,
            .argument = std::string(value),
            .text = json::string_value(value).value_or(std::string(value))};
  }

  Condition parse_operator(const std::string& name, std::string_view value, const Path& path, bool negated) {
    for (const auto& known : kComparisons) {
      if (name == known.name) return comparison(negated ? known.negation : known.op, value, path);
    }
    if (name == "$in" || name == "$nin") {
      Condition condition{.op = (name == "$in") != negated ? Operator::in : Operator::not_in,
                          .path = path,
                          .argument = std::string(value),
                          .collation = collation_of(path)};
      for_each(name, value,
               [&](std::string_view one) { condition.keys.push_back(encode_key(one, condition.collation)); });
      std::ranges::sort(condition.keys);
      return condition;
    }
    if (name == "$exists") {
      if (value != "true" && value != "false") throw bad_argument(name, value);
      const bool exists = (value == "true") != negated;
      return {.op = Operator::exists, .path = path, .argument = exists ? "true" : "false", .exists = exists};
    }
    Condition condition{
        .path = path, .negated = negated, .argument = std::string(value), .collation = collation_of(path)};
    if (name == "$type" || name == "$beginsWith" || name == "$regex") {
      const auto text = json::string_value(value);
      if (!text && name == "$beginsWith") reject(name);  // as in CouchDB
      if (!text) throw bad_argument(name, value);
      condition.op = name == "$type"    ? Operator::type
                     : name == "$regex" ? Operator::regex
                                        : Operator::begins_with;
      condition.text = *text;
      if (condition.op == Operator::regex) condition.pattern = compile(*text, value);
    } else if (name == "$mod") {
      std::vector<std::int64_t> numbers;
      for_each(name, value, [&](std::string_view one) {
        const auto number = json::int_value(one);
        if (!number) throw bad_argument(name, value);
        numbers.push_back(*number);
      });
      if (numbers.size() != 2 || numbers[0] == 0) throw bad_argument(name, value);
      condition.op = Operator::mod;
      condition.divisor = numbers[0];
      condition.number = numbers[1];
    } else if (name == "$size") {
      const auto number = json::int_value(value);
      if (!number || *number < 0) throw bad_argument(name, value);
      condition.op = Operator::size;
      condition.number = *number;
    } else if (name == "$all") {
      condition.op = Operator::all;
      for_each(name, value, [&](std::string_view one) { condition.values.emplace_back(one); });
      if (condition.values.size() == 1 && is_array(condition.values[0])) condition.text = condition.values[0];
    } else if (name == "$elemMatch" || name == "$allMatch" || name == "$keyMapMatch") {
      if (!is_object(value)) throw bad_argument(name, value);
      condition.op = name == "$elemMatch"  ? Operator::elem_match
                     : name == "$allMatch" ? Operator::all_match
                                           : Operator::key_map_match;
      condition.argument.clear();
      // As in CouchDB, negations below these are not moved to the fields, but invert what matches.
      const bool was_literal = std::exchange(literal_, true);
      condition.children.push_back(parse(value, {}, false));
      literal_ = was_literal;
    } else {
      reject(name);
    }
    return condition;
  }

  [[noreturn]] static void reject(const std::string& name) {
    for (const auto* unsupported :
         {"$where", "$geoWithin", "$geoIntersects", "$near", "$nearSphere", "$text"}) {
      if (name == unsupported) throw Error(400, "not_supported", "Unsupported operator: " + name);
    }
    throw Error(400, "invalid_operator", "Invalid operator: " + name);
  }

  static Condition comparison(Operator op, std::string_view json, const Path& path) {
    const auto collation = collation_of(path);
    return {.op = op,
            .path = path,
            .argument = std::string(json),
            .collation = collation,
            .keys = {encode_key(json, collation)}};
  }

  template <class Visit>
  static void for_each(std::string_view name, std::string_view list, const Visit& visit) {
    const bool is_list = json::for_each_element(list, [&](std::string_view element) {
      visit(element);
      return true;
    });
    if (!is_list) throw bad_argument(name, list);
  }

  std::shared_ptr<const re2::RE2> compile(const std::string& pattern, std::string_view json) {
    if (pattern.size() > kMaxPatternBytes || ++patterns_ > kMaxPatterns) throw bad_argument("$regex", json);
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kMaxPatternMemory);
    auto compiled = std::make_shared<const re2::RE2>(pattern, options);
    if (!compiled->ok()) {
      throw Error(400, "bad_arg",
                  fmt::format("Bad argument for operator $regex: {}: {}", json.substr(0, kMaxShown),
                              compiled->error()));
    }
    return compiled;
  }

  const TextOperator text_operator_;
  std::size_t conditions_ = 0;
  std::size_t patterns_ = 0;
  bool literal_ = false;
};

bool is_on_field(Operator op) {
  return op != Operator::always && op != Operator::all_of && op != Operator::any_of &&
         op != Operator::none_of && op != Operator::text;
}

}  // namespace

Condition parse_condition(std::string_view json, TextOperator text_operator) {
  if (!is_object(json)) throw bad_request("Selector error: expected a JSON object");
  if (json.size() > kMaxSelectorBytes)
    throw Error(400, "invalid_selector",
                fmt::format("The selector has more than {} bytes.", kMaxSelectorBytes));
  if (json == "{}") return {};
  Condition root = Parser(text_operator).parse(json, {}, false);
  if (is_on_field(root.op) && root.path.empty())
    throw Error(400, "invalid_selector", "One or more conditions is missing a field name.");
  return root;
}

}  // namespace divan::selector
