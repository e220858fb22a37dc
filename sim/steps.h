// The operations of clients and consumers, recorded in the store by the transaction that does them. So the
// observer of a commit knows what it was to do, and how often it was done.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/observer.h"

namespace divan::sim {

/// One operation. Each has its own token.
struct Step {
  enum class Kind { add, resubmit, cancel, remove, clear_type, update, finish, fail, release };
  Kind kind = Kind::add;
  std::string token{};
  std::string type{};
  std::string id{};    // empty for clear_type
  std::string lock{};  // of the attempt that does it, if any
  // What the job gets. Data are fingerprints.
  std::optional<std::string> data{};
  std::optional<std::string> progress{};
  std::int64_t scheduled_at = 0;
  std::int64_t priority = 0;
  std::string schedule{};  // of add; empty: none
  std::string limits{};    // of add, its own settings; empty: none
  // Of finish; as data.
  std::optional<std::string> result{};
  // Of fail and release: the delay of the next attempt in milliseconds. Of fail, -1: no further attempt.
  std::optional<std::int64_t> delay{};
};
/// The data, or of long ones the beginning and the size.
std::string fingerprint(std::string_view data);
std::string_view kind_name(Step::Kind kind);

/// Records the step: as a counter, whose key encodes all of it.
void note(kv::Transaction& tx, const Step& step);

/// The row that represents the effect of a job: a counter that each finish increments.
std::string effect_key(std::string_view type, std::string_view id);

/// The steps of a commit. Fails if one is done a second time.
std::vector<Step> steps_of(World& world, const Commit& commit);

/// Which steps were committed.
class StepsDone final : public Invariant {
 public:
  explicit StepsDone(World& world) : world_(world) {}
  void check(const Commit& commit, const Rows& rows) override;

  bool done(const std::string& token) const { return done_.contains(token); }
  /// Compares the result that a client got with what was committed. `result` is nullopt if it is unknown.
  void compare(const Step& step, std::optional<bool> result);

 private:
  World& world_;
  std::map<std::string, kv::Version> done_;
};

}  // namespace divan::sim
