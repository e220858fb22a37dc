// The state of ken: which indexes it has built, which ones wait, and why.
#include "divan/api/routes.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/index/builder.h"
#include "divan/index/left_out.h"
#include "divan/ken/lag.h"

namespace divan::api {
namespace {

// Maximum number of elements of each list.
constexpr std::size_t kMaxShown = 1000;

json::Writer& write_index(json::Writer& writer, const ken::IndexName& index) {
  return writer.key("database")
      .string(index.database)
      .key("design_document")
      .string(index.design_document)
      .key("type")
      .string(index.type)
      .key("signature")
      .string(to_hex(index.signature));
}

// Writes the first kMaxShown elements of a list as an array.
template <class List, class Write>
void write_list(json::Writer& writer, std::string_view name, const List& list, Write&& write) {
  writer.key(name).begin_array();
  for (std::size_t i = 0; i < std::min(list.size(), kMaxShown); ++i) write(list[i]);
  writer.end_array();
}

void write_settings(json::Writer& writer, const ken::Settings& settings) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  writer.key("settings").begin_object().key("limit").number(settings.limit);
  writer.key("batch_channels").number(settings.batch_channels);
  writer.key("incremental_channels").number(settings.incremental_channels);
  writer.key("max_incremental_updates").number(settings.max_incremental_updates);
  writer.key("batch_size").number(settings.batch_size);
  writer.key("delay").number(duration_cast<milliseconds>(settings.delay).count());
  writer.key("prune_interval").number(duration_cast<milliseconds>(settings.prune_interval).count());
  writer.end_object();
}

void write_active(json::Writer& writer, const Context& context, kv::Transaction& tx,
                  const ken::Status::Active& active) {
  const auto& index = active.index;
  const auto job = context.queue.find(tx, index.type, index.job, kv::Isolation::snapshot);
  write_index(writer.begin_object(), index).key("job").string(index.job);
  writer.key("state");
  job ? writer.string(jobs::state_name(job->state)) : writer.null();
  writer.key("behind").number(ken::changes_behind(tx, context.catalog, index));
  writer.key("asked_at").number(active.requested_at);
  if (job && job->state == jobs::State::running) {
    writer.key("worker").begin_object().key("role").string(job->worker_role);
    writer.key("id").string(job->worker_id).end_object();
    writer.key("started_at").number(job->started_at);
    writer.key("age").number(std::max<std::int64_t>(context.clock.wall_ms() - job->started_at, 0));
  }
  if (job && !job->progress.empty()) writer.key("progress").raw(job->progress);
  writer.end_object();
}

void write_waiting(json::Writer& writer, const Context& context, kv::Transaction& tx,
                   const ken::Status::Waiting& waiting) {
  write_index(writer.begin_object(), waiting.index);
  writer.key("behind").number(ken::changes_behind(tx, context.catalog, waiting.index));
  writer.key("why")
      .string(ken::wait_reason_name(waiting.why))
      .key("reason")
      .string(ken::wait_reason_text(waiting.why));
  if (waiting.failures) {
    writer.key("failures").number(waiting.failures->count).key("failed_at").number(waiting.failures->last_at);
    writer.key("retry_at").number(waiting.failures->retry_at());
    writer.key("error").string(waiting.failures->error);
  }
  writer.end_object();
}

struct IncompleteIndex {
  ken::IndexName index;
  index::LeftOutSummary left_out;
};

// Returns those of the first kMaxShown indexes that have left out documents.
std::vector<IncompleteIndex> find_incomplete_indexes(const Context& context, kv::Transaction& tx,
                                                     const std::vector<ken::IndexName>& indexes) {
  std::vector<IncompleteIndex> found;
  for (std::size_t i = 0; i < std::min(indexes.size(), kMaxShown); ++i) {
    const auto database = context.catalog.find(tx, indexes[i].database);
    if (!database) continue;
    auto left_out = index::read_left_out(tx, index::IndexKeys(*database, indexes[i].signature));
    if (left_out.documents > 0) found.push_back({indexes[i], std::move(left_out)});
  }
  return found;
}

// Appends what ken does for triggers.
void append(ken::Status& status, ken::Status triggers) {
  const auto append_list = [](auto& list, auto& more) {
    list.insert(list.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
  };
  append_list(status.active, triggers.active);
  append_list(status.waiting, triggers.waiting);
  append_list(status.retries, triggers.retries);
  append_list(status.left_out, triggers.left_out);
}

// The builds that run in this process.
void write_builders(json::Writer& writer, const Context& context) {
  writer.key("builders");
  if (context.builder == nullptr) {
    writer.null();
    return;
  }
  const auto builds = context.builder->running_builds();
  writer.begin_object().key("threads").number(static_cast<std::int64_t>(context.builder->threads()));
  writer.key("reserved")
      .number(static_cast<std::int64_t>(context.builder->threads() - context.builder->max_large()));
  writer.key("busy").number(static_cast<std::int64_t>(builds.size()));
  write_list(writer, "running", builds, [&](const index::RunningBuild& build) {
    writer.begin_object().key("database").string(build.database);
    writer.key("design_document").string(build.design_document);
    writer.key("type").string(build.type).key("job").string(build.job);
    writer.key("priority").number(build.priority).key("small").boolean(build.small);
    writer.key("started_at").number(build.started_at).end_object();
  });
  writer.end_object();
}

std::string_view purpose_name(js::Purpose purpose) {
  switch (purpose) {
    case js::Purpose::background: return "build";
    case js::Purpose::trial: return "trial";
    case js::Purpose::urgent: return "urgent";
    case js::Purpose::check: return "check";
    case js::Purpose::list: return "list";
  }
  return "";
}

void write_processes(json::Writer& writer, const Context& context) {
  const auto stats = context.js_pool.stats();
  const auto calls = context.js_pool.running();
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  writer.key("javascript").begin_object().key("processes").number(number(context.js_pool.processes()));
  writer.key("reserved").number(number(context.js_pool.reserved()));
  writer.key("alive").number(number(stats.alive)).key("busy").number(number(calls.size()));
  writer.key("waiting").number(number(stats.waiting));
  write_list(writer, "running", calls, [&](const js::RunningCall& call) {
    const auto held = std::chrono::duration_cast<std::chrono::milliseconds>(context.clock.now() - call.since);
    writer.begin_object().key("database").string(call.owner.database);
    writer.key("design_document").string(call.owner.design_document);
    writer.key("purpose").string(purpose_name(call.purpose));
    writer.key("os_pid").number(number(call.pid)).key("age").number(number(held.count())).end_object();
  });
  writer.end_object();
}

}  // namespace

RouteResult ken_status(const Context& context, const CallPtr& call) {
  call->allow("GET");
  if (context.ken == nullptr && context.triggers == nullptr)
    throw not_found("This process runs neither ken nor triggers: see serve --background.");
  auto status = context.ken != nullptr ? context.ken->status() : ken::Status();
  if (context.triggers != nullptr) append(status, context.triggers->status());
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto incomplete = find_incomplete_indexes(context, tx, status.left_out);
    const std::size_t not_shown = status.left_out.size() - std::min(status.left_out.size(), kMaxShown);
    json::Writer writer(out);
    writer.begin_object().key("counts").begin_object();
    writer.key("queue").number(static_cast<std::int64_t>(status.queue.size()));
    writer.key("active").number(static_cast<std::int64_t>(status.active.size()));
    writer.key("waiting").number(static_cast<std::int64_t>(status.waiting.size()));
    writer.key("retries").number(static_cast<std::int64_t>(status.retries.size()));
    writer.key("left_out").number(static_cast<std::int64_t>(incomplete.size() + not_shown)).end_object();
    writer.key("channels").begin_object().key("used").number(static_cast<std::int64_t>(status.active.size()));
    writer.key("batch").number(status.settings.batch_channels);
    writer.key("incremental").number(status.settings.incremental_channels).end_object();
    write_list(writer, "queue", status.queue, [&](const std::string& database) { writer.string(database); });
    writer.key("expanding");
    status.scanning ? writer.string(*status.scanning) : writer.null();
    write_list(writer, "active", status.active,
               [&](const auto& active) { write_active(writer, context, tx, active); });
    write_list(writer, "waiting", status.waiting,
               [&](const auto& waiting) { write_waiting(writer, context, tx, waiting); });
    write_list(writer, "retries", status.retries, [&](const ken::Status::Retry& retry) {
      writer.begin_object().key("database").string(retry.database).key("at").number(retry.at);
      if (!retry.error.empty()) writer.key("error").string(retry.error);
      writer.end_object();
    });
    write_list(writer, "left_out", incomplete, [&](const IncompleteIndex& one) {
      write_index(writer.begin_object(), one.index).key("left_out");
      one.left_out.write(writer);
      writer.end_object();
    });
    write_builders(writer, context);
    write_processes(writer, context);
    write_settings(writer, status.settings);
    writer.end_object();
  });
  return json_response(200, std::move(out));
}

}  // namespace divan::api
