#include "divan/api/active_tasks.h"

#include <algorithm>
#include <charconv>

#include "divan/api/nullable.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/compaction.h"
#include "divan/ken/lag.h"
#include "divan/replicator/jobs.h"

namespace divan::api {
namespace {

// Maximum bytes of a design document's id in the response.
constexpr std::size_t kMaxShownBytes = 1000;

// Greater than any number of a build, and small enough to be multiplied by a thousand.
constexpr std::int64_t kMaxNumber = 1'000'000'000'000'000;

// A client that has accepted the job can write anything as its progress.
std::int64_t number_of(std::string_view progress, std::string_view name) {
  const auto text = json::member(progress, name).value_or("0");
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::clamp<std::int64_t>(number, 0, kMaxNumber);
}

// The job keeps the progress of an earlier run until this run reports its own.
std::string_view progress_of_run(const jobs::Job& job) {
  return number_of(job.progress, "started_on") >= job.started_at / 1000 ? std::string_view(job.progress) : "";
}

std::optional<index::BuildRequest> request_of(const Context& context, kv::Transaction& tx,
                                              const jobs::Job& job) {
  try {
    return index::BuildRequest::parse(context.queue.data(tx, job));
  } catch (const Error&) {
    return std::nullopt;  // a client has added this job, with other data
  }
}

}  // namespace

void append_build_task(std::string& out, const Context& context, kv::Transaction& tx, const jobs::Job& job) {
  const std::int64_t now = context.clock.wall_ms();
  const auto progress = progress_of_run(job);
  const auto request = request_of(context, tx, job);
  const std::int64_t done = number_of(progress, "changes_done");
  std::int64_t behind = 0;
  if (request) behind = ken::changes_behind(tx, context.catalog, request->database, request->signature);
  // The count stops at kMaxCounted. Beyond that, the total that the build counted when it began is more
  // accurate.
  std::int64_t total = done + behind;
  if (behind >= ken::kMaxCounted) total = std::max(total, number_of(progress, "total_changes"));
  const std::int64_t percent = total == 0 ? 100 : done * 100 / total;
  json::Writer writer(out);
  writer.begin_object().key("node").string(job.worker_id).key("pid").string(job.id);
  writer.key("indexer_pid").string(job.id).key("process_status").string("running");
  writer.key("rate").number(done * 1000 / std::max<std::int64_t>(now - job.started_at, 1));
  writer.key("type").string("indexer");
  writer.key("database").string(request ? request->database : "");
  writer.key("design_document").string(request ? utf8_prefix(request->design_document, kMaxShownBytes) : "");
  writer.key("changes_done").number(done).key("total_changes").number(total).key("progress").number(percent);
  writer.key("map_failures").number(number_of(progress, "map_failures"));
  writer.key("started_on").number(job.started_at / 1000);
  writer.key("updated_on").number(std::max(number_of(progress, "updated_on"), job.started_at / 1000));
  writer.end_object();
}

void append_replication_task(std::string& out, const Context& context, kv::Transaction& tx,
                             const jobs::Job& job) {
  const auto request = replicator::ReplicationJob::parse_or_null(context.queue.data(tx, job));
  if (!request) return;
  if (out.size() > 1) out += ",\n";
  json::Writer writer(out);
  const auto& replication = request->replication;
  writer.begin_object().key("node").string(job.worker_id).key("pid").string(job.id);
  writer.key("process_status").string("running").key("type").string("replication");
  write_text_or_null(writer, "database", request->database);
  write_text_or_null(writer, "doc_id", request->document);
  write_text_or_null(writer, "user", replication.user.name);
  writer.key("replication_id").string(job.id).key("continuous").boolean(replication.continuous);
  writer.key("source").string(replication.source.shown()).key("target").string(replication.target.shown());
  writer.key("checkpoint_interval").number(replication.checkpoint_interval.count());
  for (const auto* name : {"revisions_checked", "missing_revisions_found", "docs_read", "docs_written",
                           "doc_write_failures", "changes_pending"})
    writer.key(name).number(number_of(job.progress, name));
  for (const auto* name : {"source_seq", "through_seq", "checkpointed_source_seq"})
    writer.key(name).raw(json::member(job.progress, name).value_or("null"));
  writer.key("started_on").number(job.started_at / 1000);
  writer.key("updated_on").number(std::max(number_of(job.progress, "updated_on"), job.started_at / 1000));
  writer.end_object();
}

void append_compaction_task(std::string& out, const Context& context, kv::Transaction& tx,
                            const compaction::Running& compaction) {
  const std::int64_t done = compaction.changes;
  const std::int64_t total = done + docs::count_uncompacted(tx, compaction.database, ken::kMaxCounted);
  json::Writer writer(out);
  writer.begin_object().key("node").string(context.node).key("pid").string("compaction");
  writer.key("process_status").string("running").key("type").string("database_compaction");
  writer.key("database").string(compaction.database.name()).key("phase").string("document_ids");
  writer.key("changes_done").number(done).key("total_changes").number(total);
  writer.key("progress").number(total == 0 ? 100 : done * 100 / total);
  writer.key("started_on").number(compaction.started_ms / 1000);
  writer.key("updated_on").number(compaction.updated_ms / 1000);
  writer.end_object();
}

}  // namespace divan::api
