#include "divan/kv/model/history.h"

#include <fmt/format.h>

#include <algorithm>

#include "divan/kv/model/serial.h"
#include "divan/kv/stamping.h"

namespace divan::kv::model {
namespace {

using History = std::vector<Transacted>;

std::string place(const Transacted& transacted) {
  return fmt::format("the transaction that read version {} and committed {}.{}", transacted.read_version,
                     transacted.version.value_or(-1), transacted.order);
}

std::string account(const Transacted& transacted) {
  std::string lines = place(transacted) + ":\n";
  for (const auto& step : transacted.steps) {
    lines += fmt::format("  {} -> {}\n", describe(step.operation), step.answer);
  }
  return lines;
}

// `wrong` and what was committed between its read version and its commit.
std::string accounts(const History& history, const Transacted& wrong) {
  std::string lines = "\n" + account(wrong) + "Meanwhile:\n";
  for (const auto& other : history) {
    if (other.version > wrong.read_version && other.version <= wrong.version) lines += account(other);
  }
  return lines;
}

bool is_stamped(const Operation& operation) {
  return operation.kind == Operation::Kind::stamped_key || operation.kind == Operation::Kind::stamped_value;
}

// The stamp is known by now, so setting a stamped key or value becomes a set().
Operation with_stamp(Operation operation, const Transacted& transacted) {
  std::string& bytes = operation.kind == Operation::Kind::stamped_key ? operation.begin : operation.value;
  std::string_view rest = bytes;
  const auto offset = take_stamp_offset(rest);
  bytes = stamped(rest, offset, versionstamp_bytes(transacted.version.value_or(0), transacted.order));
  operation.kind = Operation::Kind::set;
  return operation;
}

// Repeats a transaction's steps; returns a message about the first one with another result. Only reads of the
// given isolation count.
std::optional<std::string> repeat(Rows& rows, const Transacted& transacted,
                                  std::optional<Isolation> checked) {
  bool has_stamps = false;
  for (const auto& step : transacted.steps) {
    const Operation& operation = step.operation;
    const bool stamps = is_stamped(operation) && step.answer == "done";
    // The later steps saw a stamp that was never assigned.
    if (stamps && !transacted.version) return std::nullopt;
    has_stamps |= stamps;
    const std::string answer = perform(rows, stamps ? with_stamp(operation, transacted) : operation);
    if (answer == step.answer) continue;
    if (operation.is_read() && checked && operation.options.isolation != checked) continue;
    // The transaction was too old to read.
    if (operation.is_read() && step.answer == "transaction_too_old") continue;
    // The repetition can read what the transaction could not.
    if (operation.is_read() && has_stamps && step.answer == "accessed_unreadable") continue;
    return fmt::format("{}: was answered {}, and should have been {}", describe(operation), step.answer,
                       answer);
  }
  return std::nullopt;
}

std::optional<std::string> find_wrong_order(const History& history) {
  for (const auto& later : history) {
    if (later.version && *later.version <= later.read_version) {
      return place(later) + " was committed in its past";
    }
    for (const auto& earlier : history) {
      if (!earlier.version) continue;
      if (earlier.ended < later.began && later.read_version < *earlier.version) {
        return place(later) + " began after " + place(earlier) + " was acknowledged";
      }
      if (&earlier != &later && earlier.version == later.version && earlier.order == later.order) {
        return place(earlier) + " and " + place(later) + " have one versionstamp";
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_anomaly(History history, const std::string& contents_then) {
  if (auto anomaly = find_wrong_order(history)) return anomaly;
  std::sort(history.begin(), history.end(), [](const Transacted& a, const Transacted& b) {
    return std::pair(a.version, a.order) < std::pair(b.version, b.order);
  });

  Rows rows;
  // After all commits of a version.
  std::map<Version, Rows> versions = {{0, {}}};
  for (const auto& transacted : history) {
    if (!transacted.version) continue;
    if (const auto wrong = repeat(rows, transacted, Isolation::serializable)) {
      return place(transacted) + ": " + *wrong + accounts(history, transacted);
    }
    versions[*transacted.version] = rows;
  }
  for (const auto& transacted : history) {
    Rows seen = std::prev(versions.upper_bound(transacted.read_version))->second;
    if (const auto wrong = repeat(seen, transacted, std::nullopt)) {
      return place(transacted) + " did not read its version: " + *wrong + accounts(history, transacted);
    }
  }
  if (const auto now = contents(rows); now != contents_then) {
    return "the store does not hold what was committed: " + contents_then + " instead of " + now;
  }
  return std::nullopt;
}

}  // namespace divan::kv::model
