// What the actors of a world do, written down in the store by the transaction that does it. So
// observers of the commits know what each was meant to do, and how often it was done.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/observer.h"

namespace divan::sim {

/// One operation of an actor; every one has a token of its own.
struct Step {
  enum class Kind { add, resubmit, cancel, remove, clear_type, update, finish, fail, release };
  Kind kind = Kind::add;
  std::string token{};
  std::string type{};
  std::string id{};    // but for clear_type
  std::string lock{};  // of the attempt that does it
  // What the job gets. Data are as fingerprint() has them.
  std::optional<std::string> data{};
  std::optional<std::string> progress{};
  std::int64_t scheduled_at = 0;
  std::int64_t priority = 0;
  std::string schedule{};  // of add; empty: none
  std::string limits{};    // of add, its own settings; empty: none
  // Of finish. As data.
  std::optional<std::string> result{};
  // Of fail and release: how long the job is to wait, in milliseconds. Of fail:
  // -1 for no further attempt.
  std::optional<std::int64_t> delay{};
};
/// Data in short: themselves, or what tells long ones apart.
std::string fingerprint(std::string_view data);
std::string_view kind_name(Step::Kind kind);

/// Writes the step down: a counter under a key that says everything.
void note(kv::Transaction& tx, const Step& step);

/// The row that stands for a job's effect on the world: a counter, which every finish moves on by one.
std::string effect_key(std::string_view type, std::string_view id);

/// The steps of a commit. Fails where one is done for the second time.
std::vector<Step> steps_of(World& world, const Commit& commit);

/// Which steps were done, in truth.
class StepsDone final : public Invariant {
 public:
  explicit StepsDone(World& world) : world_(world) {}
  void check(const Commit& commit, const Rows& rows) override;

  bool done(const std::string& token) const { return done_.contains(token); }
  /// For an actor that was told that its step is done, or not. `told` is nothing if it does not know.
  void compare(const Step& step, std::optional<bool> told);

 private:
  World& world_;
  std::map<std::string, kv::Version> done_;
};

}  // namespace divan::sim
