// The server's metrics, in Prometheus' text format.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace divan {

/// A registry of metrics. Thread-safe. Returned references are valid for its lifetime.
class Metrics {
 public:
  using Labels = std::map<std::string, std::string>;

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// The counter of this name and these labels; the first call creates it. The names of counters end in
  /// `_total`, those of gauges do not: both throw std::logic_error otherwise.
  prometheus::Counter& counter(const std::string& name, const std::string& help, const Labels& labels = {});
  prometheus::Gauge& gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  /// `buckets` are upper bounds, in the metric's unit.
  prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                   const std::vector<double>& buckets, const Labels& labels = {});

  /// Adds a metric whose value is that of `value` at each call of text(): a counter, which must never
  /// decrease, if the name ends in `_total`, otherwise a gauge. Call during start-up only.
  void measure(const std::string& name, const std::string& help, std::function<double()> value);

  /// Adds a function that text() calls first, to set gauges from values that are counted elsewhere. Call
  /// during start-up only.
  void on_collect(std::function<void()> collector) { collectors_.push_back(std::move(collector)); }

  /// All metrics, in Prometheus' text exposition format 0.0.4.
  std::string text();

 private:
  std::shared_ptr<prometheus::Registry> registry_;
  std::vector<std::function<void()>> collectors_;
};

}  // namespace divan
