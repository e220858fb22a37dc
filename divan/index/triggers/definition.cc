#include "divan/index/triggers/definition.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "divan/base/bytes.h"
#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/index/index.h"
#include "divan/index/views/js_functions.h"
#include "divan/jobs/types.h"

namespace divan::index::triggers {
namespace {

constexpr Event kEvents[] = {Event::created, Event::updated, Event::deleted};
constexpr std::size_t kShownBytes = 60;
constexpr std::int64_t kMaxPerSecond = 1'000'000;
// About a hundred years, as for jobs that are added by requests.
constexpr std::int64_t kMaxDelay = std::int64_t{100} * 366 * 24 * 3600 * 1000;

// Reads the members of an object one by one.
class Members {
 public:
  // `name` gets the members' names in messages. Throws bad_request unless `json` is an object.
  Members(std::string name, std::string_view json) : name_(std::move(name)), json_(json) {
    if (!json::for_each_member(json, [](std::string_view, std::string_view) { return true; }))
      throw bad_request(fmt::format("`{}` must be an object.", name_));
  }

  std::optional<std::string_view> find(std::string_view name) {
    known_.push_back(name);
    return json::member(json_, name);
  }
  std::optional<std::string> string(std::string_view name) {
    const auto value = find(name);
    if (!value) return std::nullopt;
    auto text = json::string_value(*value);
    if (!text) throw bad_request(fmt::format("`{}.{}` must be a string.", name_, name));
    return text;
  }
  std::optional<Template> filled(std::string_view name) {
    const auto value = find(name);
    if (!value) return std::nullopt;
    try {
      return Template::parse(*value);
    } catch (const Error& error) {
      throw bad_request(fmt::format("`{}.{}`: {}", name_, name, error.reason()));
    }
  }
  // Must be called last. Throws bad_request for a member that was not read.
  void refuse_others() const {
    json::for_each_member(json_, [&](std::string_view raw_name, std::string_view) {
      if (std::ranges::find(known_, raw_name) != known_.end()) return true;
      throw bad_request(
          fmt::format("`{}` has an unknown member `{}`.", name_, utf8_prefix(raw_name, kShownBytes)));
    });
  }

 private:
  const std::string name_;
  const std::string_view json_;
  std::vector<std::string_view> known_;
};

// Throws bad_request unless the queue would accept the job.
void check_job(const TriggeredJob& job) {
  jobs::check_name("type", job.type);
  if (job.id) jobs::check_name("id", *job.id);
  const bool is_object = json::for_each_member(job.data, [](std::string_view raw_name, std::string_view) {
    if (json::unescape(raw_name) != kOriginMember) return true;
    throw bad_request(fmt::format("The data of a job must not have a member `{}`.", kOriginMember));
  });
  if (!is_object) throw bad_request("The data of a job must be an object.");
  if (job.data.size() > kMaxJobDataBytes) {
    throw bad_request(fmt::format("The data of a job have {} bytes; expected at most {}.", job.data.size(),
                                  kMaxJobDataBytes));
  }
  if (job.delay < 0 || job.delay > kMaxDelay)
    throw bad_request(fmt::format("The delay of a job must be 0 to {} milliseconds.", kMaxDelay));
}

std::int64_t integer(std::string_view name, std::string_view json) {
  if (const auto value = json::int_value(json)) return *value;
  throw bad_request(
      fmt::format("The {} of a job is {}; expected an integer.", name, utf8_prefix(json, kShownBytes)));
}

std::vector<Event> parse_events(std::string_view json) {
  std::vector<Event> events;
  const bool is_array = json::for_each_element(json, [&](std::string_view element) {
    const auto name = json::string_value(element);
    const auto* const event = std::ranges::find_if(kEvents, [&](Event e) { return event_name(e) == name; });
    if (event == std::end(kEvents)) {
      throw bad_request(fmt::format("`on` has {}; expected \"created\", \"updated\" or \"deleted\".",
                                    utf8_prefix(element, kShownBytes)));
    }
    events.push_back(*event);
    return true;
  });
  if (!is_array || events.empty()) throw bad_request("`on` must be an array of at least one event.");
  return events;
}

JobTemplate parse_template(std::string_view json) {
  Members members("job", json);
  JobTemplate job;
  const auto type = members.string("type");
  if (!type) throw bad_request("`job.type` is required.");
  job.type = *type;
  job.id = members.filled("id");
  job.data = members.filled("data");
  job.priority = members.filled("priority");
  job.delay = members.filled("delay");
  members.refuse_others();
  if (job.id && !job.id->is_text()) throw bad_request("`job.id` must be a string.");
  // What has no placeholders is checked now.
  const auto is_constant = [](const std::optional<Template>& part) { return part && part->is_constant(); };
  JobTemplate constant{.type = job.type};
  if (is_constant(job.id)) constant.id = job.id;
  if (is_constant(job.data)) constant.data = job.data;
  if (is_constant(job.priority)) constant.priority = job.priority;
  if (is_constant(job.delay)) constant.delay = job.delay;
  constant.fill("{}");
  return job;
}

Definition parse_definition(std::string name, std::string_view json, bool is_javascript) {
  Members members("trigger", json);
  Definition trigger{.name = std::move(name)};
  if (const auto on = members.find("on")) trigger.on = parse_events(*on);
  if (const auto selector = members.find("selector")) trigger.selector = selector::Selector::parse(*selector);
  const auto job = members.find("job");
  if (job) trigger.job = parse_template(*job);
  const auto function = members.string("map");
  if (job.has_value() == function.has_value())
    throw bad_request("Expected either `job`, a template, or `map`, a function that calls job().");
  if (function && !is_javascript) throw bad_request("`map` must be JavaScript.");
  trigger.function = function.value_or("");
  const auto since = members.string("since").value_or("now");
  if (since != "now" && since != "0")
    throw bad_request(
        fmt::format("`since` is `{}`; expected \"now\" or \"0\".", utf8_prefix(since, kShownBytes)));
  trigger.from_start = since == "0";
  if (const auto rate = members.find("max_per_second")) {
    trigger.max_per_second = json::int_value(*rate).value_or(0);
    if (trigger.max_per_second < 1 || trigger.max_per_second > kMaxPerSecond)
      throw bad_request(fmt::format("`max_per_second` must be 1 to {}.", kMaxPerSecond));
  }
  members.refuse_others();
  return trigger;
}

}  // namespace

std::string_view event_name(Event event) {
  switch (event) {
    case Event::created: return "created";
    case Event::updated: return "updated";
    case Event::deleted: return "deleted";
  }
  return "";
}

TriggeredJob JobTemplate::fill(std::string_view document) const {
  TriggeredJob job{.type = type};
  constexpr std::size_t kNumberBytes = 100;
  // Escapes in JSON have six times as many bytes.
  if (id) job.id = id->fill_text(document, 6 * jobs::kMaxNameBytes);
  if (data) job.data = data->fill(document, kMaxJobDataBytes);
  if (priority) job.priority = integer("priority", priority->fill(document, kNumberBytes));
  if (delay) job.delay = integer("delay", delay->fill(document, kNumberBytes));
  check_job(job);
  return job;
}

TriggeredJob parse_job(std::string_view emitted) {
  Members members("job()", emitted);
  const auto text = [&](std::string_view name) {
    const auto value = members.find(name);
    return value ? json::string_value(*value) : std::nullopt;
  };
  const auto type = text("type");
  if (!type) throw bad_request("The type of a job must be a string.");
  TriggeredJob job{.type = *type, .id = text("id")};
  if (const auto data = members.find("data")) job.data = *data;
  if (const auto priority = members.find("priority")) job.priority = integer("priority", *priority);
  if (const auto delay = members.find("delay")) job.delay = integer("delay", *delay);
  check_job(job);
  return job;
}

bool Definition::fires_on(Event event) const { return std::ranges::find(on, event) != on.end(); }

bool Definition::tracks_documents() const {
  return fires_on(Event::deleted) || fires_on(Event::created) != fires_on(Event::updated);
}

std::vector<Definition> parse_definitions(const std::string& design_id, std::string_view body) {
  std::vector<Definition> triggers;
  const auto object = json::member(body, kKind);
  if (!object) return triggers;
  const auto invalid = [&](std::string_view what) {
    return Error(400, "invalid_design_doc", fmt::format("`{}` {}", design_id, what));
  };
  const bool is_javascript = views::is_javascript(body);
  const auto lib = views::origin_of(design_id, body, nullptr).lib;
  const bool is_object = json::for_each_member(*object, [&](std::string_view raw_name,
                                                            std::string_view value) {
    std::string name = json::unescape(raw_name);
    if (name.empty() || name.size() > kMaxNameBytes)
      throw invalid(fmt::format("has a trigger whose name does not have 1 to {} bytes.", kMaxNameBytes));
    if (triggers.size() == kMaxTriggers)
      throw invalid(fmt::format("has more than {} triggers.", kMaxTriggers));
    const bool is_repeated = std::ranges::find(triggers, name, &Definition::name) != triggers.end();
    if (is_repeated) throw invalid(fmt::format("has two triggers `{}`.", name));
    try {
      triggers.push_back(parse_definition(std::move(name), value, is_javascript));
    } catch (const Error& error) {
      throw invalid(fmt::format("has an invalid trigger `{}`: {}", json::unescape(raw_name), error.reason()));
    }
    Definition& trigger = triggers.back();
    trigger.digest = sha256(trigger.job ? std::string(value) : std::string(value) + lib, kSignatureBytes);
    return true;
  });
  if (!is_object) throw invalid("has `triggers` that are not an object.");
  return triggers;
}

}  // namespace divan::index::triggers
