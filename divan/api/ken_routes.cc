// What ken does: which indexes it has built, which ones wait, and why.
#include "divan/api/routes.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/ken/lag.h"

namespace divan::api {
namespace {

// Of each list.
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

// The first ones of a list, as an array.
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
  writer.key("asked_at").number(active.asked_at);
  if (job && !job->progress.empty()) writer.key("progress").raw(job->progress);
  writer.end_object();
}

void write_waiting(json::Writer& writer, const Context& context, kv::Transaction& tx,
                   const ken::Status::Waiting& waiting) {
  write_index(writer.begin_object(), waiting.index);
  writer.key("behind").number(ken::changes_behind(tx, context.catalog, waiting.index));
  writer.key("why").string(ken::hold_name(waiting.why)).key("reason").string(ken::hold_meaning(waiting.why));
  if (!waiting.error.empty()) writer.key("error").string(waiting.error);
  writer.end_object();
}

}  // namespace

Answer ken_status(const Context& context, const CallPtr& call) {
  call->allow("GET");
  if (context.ken == nullptr) throw not_found("This process has no ken: see serve --background.");
  const auto status = context.ken->status();
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    json::Writer writer(out);
    writer.begin_object().key("counts").begin_object();
    writer.key("queue").number(static_cast<std::int64_t>(status.queue.size()));
    writer.key("active").number(static_cast<std::int64_t>(status.active.size()));
    writer.key("waiting").number(static_cast<std::int64_t>(status.waiting.size()));
    writer.key("retries").number(static_cast<std::int64_t>(status.retries.size())).end_object();
    writer.key("channels").begin_object().key("used").number(static_cast<std::int64_t>(status.active.size()));
    writer.key("batch").number(status.settings.batch_channels);
    writer.key("incremental").number(status.settings.incremental_channels).end_object();
    write_list(writer, "queue", status.queue, [&](const std::string& database) { writer.string(database); });
    writer.key("expanding");
    status.expanding ? writer.string(*status.expanding) : writer.null();
    write_list(writer, "active", status.active,
               [&](const auto& active) { write_active(writer, context, tx, active); });
    write_list(writer, "waiting", status.waiting,
               [&](const auto& waiting) { write_waiting(writer, context, tx, waiting); });
    write_list(writer, "retries", status.retries, [&](const ken::Status::Retry& retry) {
      writer.begin_object().key("database").string(retry.database).key("at").number(retry.at);
      if (!retry.error.empty()) writer.key("error").string(retry.error);
      writer.end_object();
    });
    write_settings(writer, status.settings);
    writer.end_object();
  });
  return json_response(200, std::move(out));
}

}  // namespace divan::api
