// What transactions on a store did, and whether that was strictly serializable.
//
// The committed transactions are repeated on a map, one after the other in the order of their versionstamps,
// and each serializable read must return what it returned before. So the history is equivalent to a serial
// one. Each transaction, committed or not, also runs again on its read version, where all of its reads must
// return the same: so snapshot reads saw that version and no other. The versions show that the serial history
// keeps the order of real time: a transaction that began after the commit of another was acknowledged has
// read its version or a later one.
#pragma once

#include "divan/kv/model/program.h"

namespace divan::kv::model {

/// What a transaction did.
struct Transacted {
  struct Step {
    Operation operation;
    std::string answer;
  };
  std::vector<Step> steps;
  Version read_version = 0;
  std::optional<Version> version;  // of its commit; nullopt: it only read, or was refused
  std::uint16_t order = 0;         // among the commits of that version
  // Moments of one clock for all: before it began, and after its commit was acknowledged.
  std::uint64_t began = 0;
  std::uint64_t ended = 0;
};

/// Returns nullopt if the history from an empty store to `contents` is strictly serializable; otherwise a
/// message with the transactions concerned.
std::optional<std::string> find_anomaly(std::vector<Transacted> history, const std::string& contents);

}  // namespace divan::kv::model
