#include "divan/index/triggers/trigger_kind.h"

#include <fmt/core.h>

namespace divan::index::triggers {

std::vector<IndexPtr> TriggerKind::indexes(const std::string& design_id, std::string_view body,
                                           const docs::Database* database) const {
  std::vector<IndexPtr> indexes;
  auto definitions = parse_definitions(design_id, body);
  if (definitions.empty()) return indexes;
  const auto origin = views::origin_of(design_id, body, database);
  for (auto& definition : definitions) {
    std::shared_ptr<const views::JsFunctions> functions;
    if (!definition.job) {
      functions = std::make_shared<views::JsFunctions>(
          origin, views::JsFunctions::Sources{{definition.name, definition.function}}, definition.digest,
          pool_, slow_, views::JsFunctions::Terms{"Trigger", "Function of the trigger"});
    }
    indexes.push_back(std::make_shared<TriggerIndex>(
        std::make_shared<const Definition>(std::move(definition)),
        TriggerOrigin{database ? database->name() : "", design_id}, std::move(functions), jobs_, limits_));
  }
  return indexes;
}

void TriggerKind::check(const std::string& design_id, std::string_view body,
                        const docs::Checkpoint& checkpoint) const {
  for (const auto& definition : parse_definitions(design_id, body)) {
    if (definition.job) continue;
    if (checkpoint) checkpoint();
    pool_.check({definition.name, definition.function},
                fmt::format("map function in the '{}' trigger", definition.name),
                views::origin_of(design_id, body, nullptr).root());
  }
}

}  // namespace divan::index::triggers
