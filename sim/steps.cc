#include "sim/steps.h"

#include <fmt/core.h>

#include "divan/kv/tuple_packer.h"

namespace divan::sim {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

void pack(Packer& packer, const std::optional<std::string>& text) {
  text ? packer.string(*text) : packer.null();
}

std::optional<std::string> take(Reader& reader) {
  return reader.take_null() ? std::nullopt : reader.take_string();
}

std::string step_key(const Step& step) {
  std::string key = note_prefix("step");
  Packer packer(key);
  packer.integer(static_cast<int>(step.kind))
      .string(step.token)
      .string(step.type)
      .string(step.id)
      .string(step.lock)
      .integer(step.scheduled_at)
      .integer(step.priority)
      .string(step.schedule)
      .string(step.limits);
  pack(packer, step.data);
  pack(packer, step.progress);
  pack(packer, step.result);
  step.delay ? packer.integer(*step.delay) : packer.null();
  return key;
}

}  // namespace

std::string_view kind_name(Step::Kind kind) {
  constexpr std::string_view kNames[] = {"add",    "resubmit", "cancel", "remove", "clear_type",
                                         "update", "finish",   "fail",   "release"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string fingerprint(std::string_view data) {
  constexpr std::size_t kShort = 200;
  if (data.size() <= kShort) return std::string(data);
  return fmt::format("{} ... {} bytes", data.substr(0, kShort / 2), data.size());
}

std::string effect_key(std::string_view type, std::string_view id) {
  std::string key;
  Packer(key).string("sim").string("effect").string(type).string(id);
  return key;
}

void note(kv::Transaction& tx, const Step& step) { tx.add(step_key(step), 1); }

std::vector<Step> steps_of(World& world, const Commit& commit) {
  std::vector<Step> steps;
  for_each_note(world, commit, "step", [&](Reader& reader) {
    Step step;
    step.kind = static_cast<Step::Kind>(reader.take_int().value());
    step.token = reader.take_string().value();
    step.type = reader.take_string().value();
    step.id = reader.take_string().value();
    step.lock = reader.take_string().value();
    step.scheduled_at = reader.take_int().value();
    step.priority = reader.take_int().value();
    step.schedule = reader.take_string().value();
    step.limits = reader.take_string().value();
    step.data = take(reader);
    step.progress = take(reader);
    step.result = take(reader);
    if (!reader.take_null()) step.delay = reader.take_int().value();
    steps.push_back(std::move(step));
  });
  return steps;
}

void StepsDone::check(const Commit& commit, const Rows&) {
  for (const auto& step : steps_of(world_, commit)) {
    if (!done_.emplace(step.token, commit.version).second) {
      world_.fail(fmt::format("{} ({}) was done twice, to {}/{}.", kind_name(step.kind), step.token,
                              step.type, step.id));
    }
  }
}

void StepsDone::compare(const Step& step, std::optional<bool> result) {
  const bool truth = done(step.token);
  if (!result) {
    world_.count(truth ? "outcome unknown: was committed" : "outcome unknown: was not");
  } else if (*result != truth) {
    world_.fail(
        fmt::format("A client got the result that the step to {} {}/{} was {}done, and it was {}done.",
                    kind_name(step.kind), step.type, step.id, *result ? "" : "not ", truth ? "" : "not "));
  }
}

}  // namespace divan::sim
