#include "divan/api/statistics.h"

#include <fmt/core.h>

#include <algorithm>

#include "divan/base/json.h"

namespace divan::api {
namespace {

// Those that CouchDB counts.
constexpr std::array<std::string_view, 7> kMethods = {"COPY",    "DELETE", "GET", "HEAD",
                                                      "OPTIONS", "POST",   "PUT"};
constexpr std::array<int, 27> kStatuses = {200, 201, 202, 204, 206, 301, 302, 304, 400,
                                           401, 403, 404, 405, 406, 409, 410, 412, 413,
                                           414, 415, 416, 417, 422, 500, 501, 503, 507};

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end; (end = path.find('.', begin)) != std::string::npos; begin = end + 1)
    parts.push_back(path.substr(begin, end - begin));
  parts.push_back(path.substr(begin));
  return parts;
}

template <class Name, std::size_t kSize>
void count(const std::array<Name, kSize>& names, std::array<StripedCounter, kSize>& counters, Name name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) counters[static_cast<std::size_t>(found - names.begin())].add(1);
}

}  // namespace

// Of one request.
class Statistics::Observer final : public http::ExchangeObserver {
 public:
  explicit Observer(Statistics& statistics) : statistics_(statistics), began_(statistics.clock_.now()) {}
  ~Observer() override {
    const auto now = statistics_.clock_.now();
    statistics_.request_time_.add(now - began_, now);
  }
  void responding(int status) override { count(kStatuses, statistics_.statuses_, status); }

 private:
  Statistics& statistics_;
  const MonotonicTime began_;
};

template <class Name, std::size_t kSize>
void Statistics::add_counters(std::string_view group, std::string_view description,
                              const std::array<Name, kSize>& names,
                              const std::array<StripedCounter, kSize>& counters) {
  for (std::size_t i = 0; i < kSize; ++i)
    add(fmt::format("{}.{}", group, names[i]), Kind::counter, fmt::format("{}{}", description, names[i]),
        [&counter = counters[i]] { return counter.total(); });
}

Statistics::Statistics(const Clock& clock) : clock_(clock) {
  add("couchdb.httpd.requests", Kind::counter, "HTTP requests", [this] { return requests_.total(); });
  add_counters("couchdb.httpd_request_methods", "HTTP requests with this method: ", kMethods, methods_);
  add_counters("couchdb.httpd_status_codes", "HTTP responses with this status: ", kStatuses, statuses_);
  add_entry("couchdb.request_time", "histogram",
            "milliseconds from the arrival of a request to the end of its work, in the last ten seconds",
            [this] { return request_time_.summary(clock_.now()); });
}

void Statistics::add(const std::string& path, Kind kind, std::string description,
                     std::function<std::uint64_t()> value) {
  add_entry(path, kind == Kind::counter ? "counter" : "gauge", std::move(description),
            [value = std::move(value)] { return std::to_string(value()); });
}

void Statistics::add_entry(const std::string& path, std::string type, std::string description,
                           std::function<std::string()> value) {
  Entry entry{split(path), std::move(type), std::move(description), std::move(value)};
  const auto place = std::ranges::lower_bound(entries_, entry.path, {}, &Entry::path);
  entries_.insert(place, std::move(entry));
}

void Statistics::observe(http::Exchange& exchange) {
  requests_.add(1);
  count<std::string_view>(kMethods, methods_, exchange.request().method());
  exchange.set_observer(std::make_unique<Observer>(*this));
}

std::string Statistics::json(std::span<const std::string> path) const {
  const auto is_below = [&](const Entry& entry) {
    return path.size() <= entry.path.size() && std::equal(path.begin(), path.end(), entry.path.begin());
  };
  std::string out;
  json::Writer writer(out);
  std::vector<std::string> open;  // the objects that are open, below `path`
  bool is_empty = true;
  for (const auto& entry : entries_) {
    if (!is_below(entry)) continue;
    const auto names = std::span(entry.path).subspan(path.size());
    if (std::exchange(is_empty, false) && !names.empty()) writer.begin_object();
    if (!names.empty()) {
      // Closes the objects that this entry is not in, and opens those that it is in.
      const auto groups = names.first(names.size() - 1);
      const auto shared = std::ranges::mismatch(open, groups).in1 - open.begin();
      for (; std::ssize(open) > shared; open.pop_back()) writer.end_object();
      for (const auto& name : groups.subspan(static_cast<std::size_t>(shared))) {
        writer.key(name).begin_object();
        open.push_back(name);
      }
      writer.key(names.back());
    }
    writer.begin_object().key("value").raw(entry.value()).key("type").string(entry.type);
    writer.key("desc").string(entry.description).end_object();
    if (names.empty()) return out;
  }
  if (is_empty) return "null";
  for (std::size_t i = 0; i <= open.size(); ++i) writer.end_object();
  return out;
}

}  // namespace divan::api
