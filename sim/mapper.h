// Views without JavaScript, since the processes that run it cannot be stepped. The server's code builds the
// indexes; only the results of map functions are computed here.
#pragma once

#include <map>

#include "divan/index/index.h"
#include "divan/jobs/attempts.h"
#include "sim/attempt_note.h"
#include "sim/database_model.h"

namespace divan::sim {

/// The rows of a document by the map function number `function`: key and value.
using Emitted = std::vector<std::pair<std::string, std::string>>;
Emitted emitted(int function, std::string_view document);

inline constexpr int kFunctions = 3;
/// The type of the jobs of triggers. No worker accepts them.
inline constexpr std::string_view kTriggeredType = "triggered";
/// Returns true if the design documents with views by this function have a trigger. Its jobs are made by a
/// template, and have the function in their data.
inline bool has_trigger(int function) { return function != 2; }
/// A design document's body with a view by this function, and perhaps a trigger.
std::string design_body(int function);
/// The function of the view that a design document's body defines; nullopt: none.
std::optional<int> function_of(std::string_view body);
/// The signature of an index with one view by this function.
std::string signature_of(int function);

/// The kind "views". Mapping a batch takes up to `longest`.
class MapperKind final : public index::Kind {
 public:
  MapperKind(World& world, Duration longest, std::function<std::string()> token)
      : world_(world), longest_(longest), token_(std::move(token)) {}

  std::string_view name() const override { return "views"; }
  std::vector<index::IndexPtr> indexes(const std::string& design_id, std::string_view body,
                                       const docs::Database* database) const override;
  void check(const std::string&, std::string_view, const docs::Checkpoint&) const override {}

  World& world() const { return world_; }
  Duration longest() const { return longest_; }
  std::string token() const { return token_(); }

  /// Sets the job for which the current task builds; nullptr: none.
  void set_building(const jobs::AcceptedJob* job) { building_[world_.task()] = job; }
  const jobs::AcceptedJob& building() const { return *building_.at(world_.task()); }

 private:
  World& world_;
  const Duration longest_;
  const std::function<std::string()> token_;
  std::map<std::uint64_t, const jobs::AcceptedJob*> building_;  // by task
};

}  // namespace divan::sim
