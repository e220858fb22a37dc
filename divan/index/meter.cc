#include "divan/index/meter.h"

#include <prometheus/counter.h>

namespace divan::index {
namespace {

// Maximum number of indexes with labels of their own, the first that are built. All others share one.
constexpr std::size_t kMaxLines = 200;
constexpr const char* kOthers = "_other";

}  // namespace

void Meter::mapped(const std::string& database, const std::string& design_document, const MappedBatch& batch,
                   Duration elapsed) {
  std::lock_guard lock(mutex_);
  Line& line = line_of(database, design_document);
  line.documents->Increment(static_cast<double>(batch.documents()));
  line.rows->Increment(static_cast<double>(batch.rows()));
  line.seconds->Increment(std::chrono::duration<double>(elapsed).count());
}

// mutex_ must be held.
Meter::Line& Meter::line_of(std::string database, std::string design_document) {
  if (const auto found = lines_.find({database, design_document}); found != lines_.end())
    return found->second;
  if (lines_.size() >= kMaxLines && database != kOthers) return line_of(kOthers, kOthers);
  const Metrics::Labels labels{{"database", database}, {"design_document", design_document}};
  const Line line{
      &metrics_.counter("divan_index_documents_total", "Changed documents mapped for an index.", labels),
      &metrics_.counter("divan_index_rows_total", "Rows emitted for an index.", labels),
      &metrics_.counter("divan_index_map_seconds_total", "Time spent mapping documents for an index.",
                        labels)};
  return lines_.emplace(std::pair(std::move(database), std::move(design_document)), line).first->second;
}

}  // namespace divan::index
