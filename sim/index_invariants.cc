#include "sim/index_invariants.h"

#include <fmt/core.h>

#include "divan/base/json.h"
#include "divan/docs/document.h"
#include "divan/index/views/rows.h"
#include "divan/jobs/rows.h"
#include "sim/job_rows.h"

namespace divan::sim {

void IndexInvariants::check(const Commit& commit, const Rows&) {
  for (const auto& change : commit.changes) trace_build(change);
  std::set<std::int64_t> touched;
  for (const auto& change : commit.changes) {
    if (const auto number = docs::database_number(change.key)) touched.insert(*number);
  }
  if (touched.empty()) return;
  const auto tx = engine_.database().begin();
  for (const auto number : touched) {
    const auto database = databases_.databases().find(number);
    for (int function = 0; function < kFunctions; ++function) {
      const Name name{number, function};
      if (database == databases_.databases().end()) {
        reached_.erase(name);
        continue;
      }
      const index::IndexKeys keys(databases_.open(number), signature_of(function));
      if (commit.find(keys.state()) == nullptr) continue;
      const auto reached = index::read_sequence(*tx, keys, kv::Isolation::snapshot);
      if (reached != kv::Versionstamp() && reached <= reached_[name])
        world_.fail(fmt::format("Index {} of {} went back.", function, database->second.name));
      reached_[name] = reached;
      world_.trace(fmt::format("  index {} of {} is at {}", function, database->second.name, reached.hex()));
      check_rows(name, reached, *tx);
    }
  }
}

void IndexInvariants::trace_build(const Change& change) {
  const auto row = parse_job_row(change.key);
  if (!row || row->kind != "job" || row->job.first != "views") return;
  const auto state = [&](const std::optional<std::string>& value) {
    if (!value) return std::string("gone");
    const auto job = jobs::decode_job("views", row->job.second, *value);
    return fmt::format("{}{}", jobs::state_name(job.state), job.resubmit ? " and again" : "");
  };
  world_.trace(
      fmt::format("  build {} {} -> {}", row->job.second, state(change.before), state(change.after)));
}

void IndexInvariants::check_rows(const Name& name, const kv::Versionstamp& reached, kv::Transaction& tx) {
  const auto& [number, function] = name;
  const DatabaseModel& model = databases_.databases().at(number);
  using Row = std::tuple<std::string, std::string, std::string>;  // document, key, value
  std::multiset<Row> expected, found;
  for (const auto& [id, document] : model.documents) {
    if (document.sequence > reached) continue;
    if (document.tree.empty() || document.tree.front().deleted || docs::is_design(id)) continue;
    const auto winner = document.tree.front().revision();
    std::string json;
    docs::append_open_document(json, id, winner, false, document.bodies.at(winner));
    docs::append_conflicts(json, document.tree);
    json += '}';
    for (auto& [key, value] : emitted(function, json)) expected.emplace(id, key, value);
  }
  const bool removed = reached == kv::Versionstamp();
  const auto has_changed = [&](std::string_view id) {
    const auto document = model.documents.find(std::string(id));
    return !removed && document != model.documents.end() && document->second.sequence > reached;
  };
  const index::IndexKeys keys(databases_.open(number), signature_of(function));
  std::pair<std::string, std::string> last;
  index::views::visit_rows(tx, keys, 0, index::views::all_rows(keys, 0), false,
                           [&](const index::views::ViewRow& row) {
                             if (!has_changed(row.id)) found.emplace(row.id, row.key, row.value);
                             std::pair place{std::string(row.encoded_key), std::string(row.id)};
                             if (place < last)
                               world_.fail(fmt::format("Rows of {} are not in order.", model.name));
                             last = std::move(place);
                             return true;
                           });
  const bool complete = removed || reached == model.last;
  world_.count(complete ? "indexes compared with a build from nothing"
                        : "the same before the end of the changes");
  for (const auto& [one, other, what] :
       {std::tuple(&expected, &found, "lacks"), {&found, &expected, "has"}}) {
    for (const auto& row : *one) {
      if (other->contains(row)) continue;
      world_.fail(fmt::format("Index {} of {} {} the row {} of {}, unlike a build from nothing.", function,
                              model.name, what, std::get<1>(row), std::get<0>(row)));
    }
  }
  if (expected.size() != found.size())
    world_.fail(fmt::format("Index {} of {} has {} rows, a build from nothing {}.", function, model.name,
                            found.size(), expected.size()));
  if (complete && index::views::count_rows(tx, keys, 0) != static_cast<std::int64_t>(expected.size()))
    world_.fail(fmt::format("Index {} of {} counts another number of rows than {}.", function, model.name,
                            expected.size()));
}

std::optional<std::string> IndexInvariants::behind() const {
  for (const auto& [number, model] : databases_.databases()) {
    for (const auto& [id, document] : model.documents) {
      if (!docs::is_design(id) || document.tree.empty() || document.tree.front().deleted) continue;
      const auto function = function_of(document.bodies.at(document.tree.front().revision()));
      if (!function) continue;
      const auto reached = reached_.find({number, *function});
      if (reached == reached_.end() || reached->second != model.last)
        return fmt::format("The index of {} in {}", id, model.name);
    }
  }
  return std::nullopt;
}

}  // namespace divan::sim
