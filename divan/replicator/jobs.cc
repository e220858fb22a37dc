#include "divan/replicator/jobs.h"

#include "divan/base/error.h"
#include "divan/base/json.h"

namespace divan::replicator {
namespace {

// Pauses after failures, as CouchDB's: they double, up to eight hours.
constexpr Duration kFirstBackoff = std::chrono::seconds(30);
constexpr Duration kLongestBackoff = std::chrono::hours(8);
// No replication is given up.
constexpr std::int64_t kMaxAttempts = 1'000'000'000;

}  // namespace

std::string ReplicationJob::to_json() const {
  std::string out;
  json::Writer writer(out);
  writer.begin_object().key("replication").raw(json);
  writer.key("user").begin_object().key("name").string(replication.user.name);
  writer.key("roles").raw(replication.user.roles).end_object();
  writer.key("database").string(database).key("doc_id").string(document).end_object();
  return out;
}

ReplicationJob ReplicationJob::parse(std::string_view json) {
  ReplicationJob job;
  const auto replication = json::member(json, "replication");
  if (!replication) throw bad_request("Invalid data of a replication.");
  job.json = *replication;
  job.replication = Replication::parse(job.json);
  if (const auto user = json::member(json, "user")) {
    job.replication.user.name = json::string_value(json::member(*user, "name").value_or("")).value_or("");
    job.replication.user.roles = json::member(*user, "roles").value_or("[]");
  }
  job.database = json::string_value(json::member(json, "database").value_or("")).value_or("");
  job.document = json::string_value(json::member(json, "doc_id").value_or("")).value_or("");
  return job;
}

std::optional<ReplicationJob> ReplicationJob::parse_or_null(std::string_view json) {
  try {
    return parse(json);
  } catch (const Error&) { return std::nullopt; }
}

void declare_replications(jobs::Queue& queue, kv::Database& store) {
  jobs::TypeSettings settings;
  settings.max_attempts = kMaxAttempts;
  settings.max_lost.reset();
  settings.backoff_min = kFirstBackoff;
  settings.backoff_max = kLongestBackoff;
  settings.retention = std::chrono::hours(1);
  queue.set_own_type(std::string(kJobType), settings);
  store.run([&](kv::Transaction& tx) { queue.set_type(tx, kJobType, settings); });
}

std::string request_replication(jobs::Queue& queue, kv::Transaction& tx, const ReplicationJob& job,
                                std::string_view server_uuid, std::string limits) {
  auto id = job.replication.id(server_uuid);
  const auto present = queue.find(tx, kJobType, id);
  if (present && !jobs::has_ended(present->state) && !present->cancel) {
    const auto data = queue.data(tx, *present);
    const auto other = ReplicationJob::parse_or_null(data);
    const bool is_of_document = other && !other->document.empty();
    const bool is_running = present->state == jobs::State::running && data == job.to_json();
    if (is_of_document || is_running) return id;
  }
  queue.add(tx, kJobType, id, job.to_json(), {.limits = std::move(limits)});
  return id;
}

}  // namespace divan::replicator
