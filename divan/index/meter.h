// The cost of mapping documents, by index, as metrics.
#pragma once

#include <map>
#include <string>

#include "divan/base/clock.h"
#include "divan/base/metrics.h"
#include "divan/index/index.h"

namespace divan::index {

/// Counts what is mapped, as metrics. Thread-safe. The metrics must outlive it.
class Meter {
 public:
  explicit Meter(Metrics& metrics) : metrics_(metrics) {}

  /// Counts documents that were mapped for an index, and the elapsed time.
  void mapped(const std::string& database, const std::string& design_document, const MappedBatch& batch,
              Duration elapsed);

 private:
  struct Line {
    prometheus::Counter* documents;
    prometheus::Counter* rows;
    prometheus::Counter* seconds;
  };
  Line& line_of(std::string database, std::string design_document);

  Metrics& metrics_;
  Mutex mutex_{MutexRank::build_meter, "Meter::mutex_"};       // protects lines_
  std::map<std::pair<std::string, std::string>, Line> lines_;  // by database and design document
};

}  // namespace divan::index
