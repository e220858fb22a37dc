#include "divan/base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <stdexcept>

#include "divan/base/mutex.h"

namespace divan {
namespace {

bool names_counter(const std::string& name) { return name.ends_with("_total"); }

}  // namespace

Metrics::Metrics() : registry_(std::make_shared<prometheus::Registry>()) {}
Metrics::~Metrics() = default;

prometheus::Counter& Metrics::counter(const std::string& name, const std::string& help,
                                      const Labels& labels) {
  if (!names_counter(name)) throw std::logic_error("The name of a counter ends in _total: " + name);
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry_).Add(labels);
}

prometheus::Gauge& Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  if (names_counter(name)) throw std::logic_error("The name of a gauge does not end in _total: " + name);
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry_).Add(labels);
}

prometheus::Histogram& Metrics::histogram(const std::string& name, const std::string& help,
                                          const std::vector<double>& buckets, const Labels& labels) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(*registry_).Add(labels, buckets);
}

void Metrics::measure(const std::string& name, const std::string& help, std::function<double()> value) {
  if (names_counter(name)) {
    auto& total = counter(name, help);
    // The metrics may be read concurrently.
    on_collect([&total, value = std::move(value),
                mutex = std::make_shared<Mutex>(MutexRank::collected_counter, "Metrics::measure()")] {
      std::lock_guard lock(*mutex);
      total.Increment(std::max(0.0, value() - total.Value()));
    });
  } else {
    auto& shown = gauge(name, help);
    on_collect([&shown, value = std::move(value)] { shown.Set(value()); });
  }
}

std::string Metrics::text() {
  for (const auto& collect : collectors_) collect();
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace divan
