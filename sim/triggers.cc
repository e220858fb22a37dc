#include "sim/triggers.h"

#include <fmt/core.h>

#include "divan/base/json.h"
#include "divan/docs/document.h"
#include "divan/docs/sequence.h"
#include "divan/jobs/rows.h"
#include "sim/job_rows.h"

namespace divan::sim {
namespace {

// The function of the view of a design document that has a trigger; nullopt if it has none.
std::optional<int> trigger_of(const DocumentModel& document) {
  if (document.tree.empty() || document.tree.front().deleted) return std::nullopt;
  const auto function = function_of(document.bodies.at(document.tree.front().revision()));
  return function && has_trigger(*function) ? function : std::nullopt;
}

}  // namespace

void TriggerInvariants::check(const Commit& commit, const Rows&) {
  for (const auto& edit : edits_of(world_, commit)) {
    const auto database = databases_.databases().find(edit.database);
    if (docs::is_design(edit.id) && database != databases_.databases().end())
      record_triggers(edit.database, database->second);
  }
  for (const auto& change : commit.changes) {
    const auto row = parse_job_row(change.key);
    if (!row || row->kind != "job" || row->job.first != kTriggeredType || !change.after || change.before)
      continue;
    check_job(jobs::decode_job(row->job.first, row->job.second, *change.after).data);
  }
}

void TriggerInvariants::record_triggers(std::int64_t number, const DatabaseModel& model) {
  for (const auto& [id, document] : model.documents) {
    if (!docs::is_design(id)) continue;
    if (trigger_of(document)) {
      started_.try_emplace({number, id}, document.sequence);
    } else {
      started_.erase({number, id});
    }
  }
}

void TriggerInvariants::check_job(std::string_view data) {
  const auto trigger = json::member(data, "_trigger").value_or("{}");
  const auto text = [&](std::string_view name) {
    return json::string_value(json::member(trigger, name).value_or("")).value_or("");
  };
  const std::string name = text("db"), design = text("ddoc"), id = text("id"), sequence = text("seq");
  const auto database = std::ranges::find_if(databases_.databases(),
                                             [&](const auto& entry) { return entry.second.name == name; });
  // Others are targets of replications.
  if (database == databases_.databases().end()) return;
  world_.count("jobs of triggers");
  if (!seen_.emplace(design, id, sequence).second)
    return world_.fail(
        fmt::format("The change {} of {} has led to a second job of {}.", sequence, id, design));
  const auto& documents = database->second.documents;
  const auto definition = documents.find(design);
  const auto function = definition == documents.end() ? std::nullopt : trigger_of(definition->second);
  const auto of_job = json::int_value(json::member(data, "f").value_or(""));
  if (!function || of_job != *function)
    world_.fail(fmt::format("A job of {} in {} is of another definition.", design, name));
  const auto started = started_.find({database->first, design});
  if (started != started_.end() && docs::parse_sequence(sequence) < started->second)
    world_.fail(fmt::format("The change {} of {} came before the trigger of {}.", sequence, id, design));
}

std::optional<std::string> TriggerInvariants::missing() const {
  for (const auto& [name, started] : started_) {
    const auto& [number, design] = name;
    const auto database = databases_.databases().find(number);
    if (database == databases_.databases().end()) continue;
    for (const auto& [id, document] : database->second.documents) {
      if (docs::is_design(id) || document.tree.empty() || document.tree.front().deleted) continue;
      if (document.sequence <= started) continue;
      const auto sequence = docs::to_sequence(document.sequence);
      if (!seen_.contains({design, id, sequence}))
        return fmt::format("{} in {} has no job of the trigger of {} for its change {}", id,
                           database->second.name, design, sequence);
    }
  }
  return std::nullopt;
}

}  // namespace divan::sim
