#include "divan/kv/model/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "divan/kv/reference/reference.h"

namespace divan::kv::model {
namespace {

// Does a transaction's steps again; answers the first one of the given isolation whose answer is another now.
std::optional<std::string> repeat(Transaction& tx, const Transacted& transacted,
                                  std::optional<Isolation> checked) {
  for (const auto& step : transacted.steps) {
    const std::string answer = perform(tx, step.operation);
    const bool is_checked =
        step.operation.is_read() && (!checked || step.operation.options.isolation == checked);
    if (is_checked && answer != step.answer) {
      return fmt::format("{}: was answered {}, and should have been {}", describe(step.operation),
                         step.answer, answer);
    }
  }
  return std::nullopt;
}

std::string place(const Transacted& transacted) {
  return fmt::format("the transaction that read version {} and committed {}.{}", transacted.read_version,
                     transacted.version.value_or(-1), transacted.order);
}

std::optional<std::string> find_time_travel(const std::vector<Transacted>& history) {
  for (const auto& later : history) {
    for (const auto& earlier : history) {
      if (earlier.version && earlier.ended < later.began && later.read_version < *earlier.version) {
        return place(later) + " began after " + place(earlier) + " was acknowledged";
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_anomaly(std::vector<Transacted> history, const std::string& contents_then) {
  if (auto anomaly = find_time_travel(history)) return anomaly;
  const auto by_commit = [](const Transacted& a, const Transacted& b) {
    return std::pair(a.version, a.order) < std::pair(b.version, b.order);
  };
  std::sort(history.begin(), history.end(), by_commit);

  SystemClock clock;
  SystemRng rng;
  reference::ReferenceDatabase again(clock, rng);
  // Of the reference, after all commits of a version.
  std::map<Version, Version> versions = {{0, 0}};
  for (const auto& transacted : history) {
    if (!transacted.version) continue;
    const auto tx = again.begin();
    if (auto wrong = repeat(*tx, transacted, Isolation::serializable))
      return place(transacted) + ": " + *wrong;
    if (commit(*tx) != "committed") return place(transacted) + " cannot be committed again";
    versions[*transacted.version] = again.version();
  }
  for (const auto& transacted : history) {
    const auto seen = std::prev(versions.upper_bound(transacted.read_version))->second;
    const auto tx = again.begin_at(seen);
    const auto checked = transacted.version ? std::optional(Isolation::snapshot) : std::nullopt;
    if (auto wrong = repeat(*tx, transacted, checked)) {
      return place(transacted) + " did not read its version: " + *wrong;
    }
  }
  if (contents(again) != contents_then) return "the store does not hold what was committed";
  return std::nullopt;
}

}  // namespace divan::kv::model
