// Triggers as design documents define them: which changes of documents lead to which jobs. docs/triggers.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/index/triggers/template.h"
#include "divan/selector/selector.h"

namespace divan::index::triggers {

/// The member of design documents that defines triggers, and the type of the jobs that run them.
inline constexpr std::string_view kKind = "triggers";

/// The member of a job's data that says where the job comes from.
inline constexpr std::string_view kOriginMember = "_trigger";
/// The largest data of a job, in bytes of JSON: all jobs of a document fit in a transaction.
inline constexpr std::size_t kMaxJobDataBytes = 1'000'000;
/// The maximum number of triggers in a design document, and of bytes of their names.
inline constexpr std::size_t kMaxTriggers = 100;
inline constexpr std::size_t kMaxNameBytes = 100;

/// What has happened to a document since its trigger has seen it.
enum class Event { created, updated, deleted };
/// The name of the enumerator.
std::string_view event_name(Event event);

/// A job as a trigger adds it. A value type.
struct TriggeredJob {
  std::string type;
  std::optional<std::string> id;
  std::string data = "{}";  // a JSON object
  std::int64_t priority = 0;
  std::int64_t delay = 0;  // milliseconds
};

/// The member `job` of a trigger.
struct JobTemplate {
  std::string type;
  std::optional<Template> id;
  std::optional<Template> data, priority, delay;

  /// The job for a document. Throws FieldMissing, or bad_request if the job is invalid (check_job()).
  TriggeredJob fill(std::string_view document) const;
};

/// The job that a function has requested: the arguments of job(), as the sandbox emits them. Throws
/// bad_request if they are malformed, or the job is invalid.
TriggeredJob parse_job(std::string_view emitted);

/// A trigger. A value type.
struct Definition {
  std::string name;
  std::vector<Event> on{Event::created, Event::updated};
  std::optional<selector::Selector> selector;  // nullopt: all documents
  std::optional<JobTemplate> job;              // nullopt: `function` says which
  std::string function;                        // JavaScript; unused if there is a template
  bool from_start = false;                     // `since` is "0"
  std::int64_t max_per_second = 0;             // 0: no limit
  std::string digest;                          // of all that determines its jobs

  bool fires_on(Event event) const;
  /// Returns true if it must know whether a document is new.
  bool tracks_documents() const;
};

/// The triggers of a design document. Throws invalid_design_doc (400) if they are malformed, or more than
/// kMaxTriggers.
std::vector<Definition> parse_definitions(const std::string& design_id, std::string_view body);

}  // namespace divan::index::triggers
