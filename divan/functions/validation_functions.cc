#include "divan/functions/validation_functions.h"

#include <fmt/core.h>

#include "divan/base/bytes.h"
#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/docs/reader.h"
#include "divan/functions/design_function.h"

namespace divan::functions {
namespace {

constexpr std::size_t kMaxMessage = 1'000;
const std::string kMember = "validate_doc_update";

// The message in {"forbidden": message}: a text, or another value as JSON.
std::string message_of(std::string_view value) {
  const std::string message = json::string_value(value).value_or(std::string(value));
  return std::string(utf8_prefix(message, kMaxMessage));
}

// The error for what a function has thrown, as JSON.
Error refusal(std::string_view thrown) {
  std::optional<Error> error;
  json::for_each_member(thrown, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    if (name == "forbidden") error = forbidden(message_of(value));
    if (name == "unauthorized") error = unauthorized(message_of(value));
    return !error;
  });
  return error ? *error : Error(500, "unknown_error", message_of(thrown));
}

FunctionVerdict verdict(const js::Outcome& outcome, const js::Program& program) {
  if (const auto* failure = std::get_if<js::Failure>(&outcome)) {
    const bool is_slow =
        failure->kind == js::FailureKind::timeout || failure->kind == js::FailureKind::out_of_memory;
    return {Error(500, "validation_function_failed",
                  fmt::format("`{}` of `{}` failed: {}", kMember, program.owner().design_document,
                              failure->message)),
            is_slow};
  }
  const auto& thrown = std::get<std::string>(outcome);
  if (thrown.empty()) return {};
  return {refusal(thrown)};
}

}  // namespace

ValidationFunctions read_validation_functions(kv::Transaction& tx, const docs::Database& database,
                                              std::string validators) {
  ValidationFunctions functions;
  functions.bytes = validators.size();
  for (const auto& [id, revision] : docs::parse_validators(validators)) {
    const auto tree = docs::read_tree(tx, database, id, kv::Isolation::snapshot);
    const docs::Leaf* const leaf = docs::find_leaf(tree, revision);
    if (leaf == nullptr)
      throw internal_error(fmt::format("{} of database {} is not the winner of `{}`.", revision.to_string(),
                                       database.name(), id));
    const std::string body = docs::read_body(tx, database, *leaf);
    functions.programs.push_back(design_function(owner_of(database, id), body, {&kMember, 1}));
    functions.bytes += 2 * body.size();
  }
  functions.validators = std::move(validators);
  return functions;
}

std::vector<FunctionVerdict> validate(js::Pool& pool, const js::Program& program,
                                      std::span<const js::Arguments> cases, const js::Limits& limits) {
  std::vector<FunctionVerdict> verdicts;
  for (const auto& outcome : pool.apply(program, js::ResultKind::refusal, cases, limits))
    verdicts.push_back(verdict(outcome, program));
  return verdicts;
}

void check_validation(js::Pool& pool, const std::string& design_id, std::string_view body) {
  if (!docs::has_validation(body)) return;
  const auto program = design_function({{}, 0, design_id}, body, {&kMember, 1});
  pool.check(program.functions.front(), fmt::format("`{}` function", kMember), program.root);
}

}  // namespace divan::functions
