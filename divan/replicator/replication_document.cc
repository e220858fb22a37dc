#include "divan/replicator/replication_document.h"

#include <absl/time/time.h>
#include <fmt/core.h>

#include "divan/base/error.h"
#include "divan/base/json.h"
#include "divan/base/log.h"
#include "divan/docs/reader.h"
#include "divan/docs/writer.h"
#include "divan/replicator/peer.h"

namespace divan::replicator {
namespace {

constexpr std::string_view kOutcomePrefix = "_replication_";
constexpr std::size_t kMaxReasonBytes = 2'000;
// So that its job and its outcome fit.
constexpr std::size_t kMaxDocumentBytes = 4'000'000;

bool is_local_or_design(std::string_view id) {
  return docs::is_design(id) || id.starts_with(docs::kLocalPrefix);
}

std::string with_outcome(std::string_view body, const ReplicationOutcome& outcome, std::int64_t now_ms) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  json::for_each_member(body, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    if (!name.starts_with(kOutcomePrefix)) writer.key(name).raw(value);
    return true;
  });
  const bool is_completed = outcome.reason.empty();
  writer.key("_replication_state").string(is_completed ? "completed" : "failed");
  writer.key("_replication_state_time").string(utc_time(now_ms));
  if (!is_completed)
    writer.key("_replication_state_reason").string(shown_text(outcome.reason, kMaxReasonBytes));
  if (!outcome.stats.empty()) writer.key("_replication_stats").raw(outcome.stats);
  if (!outcome.id.empty()) writer.key("_replication_id").string(outcome.id);
  writer.end_object();
  return out;
}

// Returns false if the document is as large as it may be: then only the job has the outcome.
bool write_outcome(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                   const docs::Leaf& winner, std::string_view body, const ReplicationOutcome& outcome,
                   std::int64_t now_ms) {
  try {
    docs::replace_winner(tx, database, id, winner, with_outcome(body, outcome, now_ms));
    return true;
  } catch (const Error& error) {
    if (error.status() != 413) throw;
    log::warning("Document `{}` of `{}` is too large to have its outcome.", id, database.name());
    return false;
  }
}

}  // namespace

bool is_replicator_database(std::string_view name) {
  return name == kReplicatorDatabase || name.ends_with("/_replicator");
}

void check_document(const docs::IncomingDocument& document, bool is_server_admin) {
  if (document.deleted || is_local_or_design(document.id)) return;
  // An outcome is restored, or written back by a client that has edited the document: nothing is started.
  if (outcome_of(document.body)) return;
  if (document.body.size() > kMaxDocumentBytes)
    throw Error(413, "document_too_large",
                fmt::format("A replication may have {} bytes.", kMaxDocumentBytes));
  const std::string members = without_outcome(document.body);
  try {
    const auto replication = Replication::parse(members);
    if (is_server_admin) return;
    if (!replication.source.is_remote() || !replication.target.is_remote())
      throw forbidden(
          "Only administrators of the server may name its databases; use a URL with credentials.");
    if (json::member(members, "user_ctx"))
      throw forbidden("Only administrators of the server may set `user_ctx`.");
  } catch (const Error& error) {
    if (error.status() != 400) throw;
    throw forbidden(error.reason());
  }
}

std::string without_outcome(std::string_view body) {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  json::for_each_member(body, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    if (!name.starts_with('_')) writer.key(name).raw(value);
    return true;
  });
  writer.end_object();
  return out;
}

std::optional<std::string> outcome_of(std::string_view body) {
  const auto state = json::string_value(json::member(body, "_replication_state").value_or(""));
  return state == "completed" || state == "failed" ? state : std::nullopt;
}

ReplicationJob job_of_document(const std::string& database, const std::string& id, std::string_view body) {
  ReplicationJob job;
  job.json = without_outcome(body);
  job.replication = Replication::parse(job.json);
  if (!json::member(job.json, "user_ctx")) job.replication.user.roles = R"(["_admin"])";
  // Only the database of the server's administrators shares replications with their requests.
  if (database != kReplicatorDatabase) job.replication.realm = database;
  job.database = database;
  job.document = id;
  return job;
}

void record_outcome(kv::Transaction& tx, docs::Catalog& catalog, const ReplicationJob& job,
                    const ReplicationOutcome& outcome, std::int64_t now_ms) {
  const auto database = catalog.find(tx, job.database);
  if (!database) return;
  const auto tree = docs::read_tree(tx, *database, job.document);
  if (tree.empty() || tree.front().deleted) return;
  const std::string body = docs::read_body(tx, *database, tree.front());
  if (outcome_of(body) || without_outcome(body) != job.json) return;
  write_outcome(tx, *database, job.document, tree.front(), body, outcome, now_ms);
}

bool record_failure(kv::Transaction& tx, const docs::Database& database, const std::string& id,
                    const docs::Leaf& winner, std::string_view reason, std::int64_t now_ms) {
  const std::string body = docs::read_body(tx, database, winner);
  return write_outcome(tx, database, id, winner, body, {.reason = std::string(reason)}, now_ms);
}

std::string utc_time(std::int64_t ms) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixMillis(ms), absl::UTCTimeZone());
}

}  // namespace divan::replicator
