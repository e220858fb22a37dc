// The state of a trigger: _trigger/{name}.
#include <fmt/core.h>

#include "divan/api/routes.h"
#include "divan/api/view_queries.h"
#include "divan/base/json.h"
#include "divan/docs/purge.h"
#include "divan/docs/sequence.h"
#include "divan/index/failures.h"
#include "divan/index/left_out.h"
#include "divan/index/triggers/state.h"
#include "divan/index/triggers/trigger_index.h"

namespace divan::api {
namespace {

struct ResolvedTrigger : ResolvedDesign {
  index::IndexPtr index;
};

ResolvedTrigger find_trigger(const Context& context, kv::Transaction& tx, const Call& call) {
  const std::string design_id = std::string(docs::kDesignPrefix) + call.path()[2];
  const std::string& name = call.path()[4];
  ResolvedTrigger found{find_design(context, tx, call.path()[0], design_id), nullptr};
  for (const auto& kind : context.kinds) {
    if (kind->name() != index::triggers::kKind) continue;
    for (const auto& index : kind->indexes(design_id, found.body, &found.database)) {
      if (index->name() == name) found.index = index;
    }
  }
  if (!found.index) throw not_found(fmt::format("`{}` has no trigger `{}`.", design_id, name));
  return found;
}

}  // namespace

RouteResult trigger_info(const Context& context, const CallPtr& call) {
  call->allow("GET");
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto found = find_trigger(context, tx, *call);
    const index::IndexKeys keys(found.database, found.index->signature());
    const auto sequence = index::find_sequence(tx, keys, kv::Isolation::snapshot);
    json::Writer writer(out);
    writer.begin_object().key("name").string(call->path()[4]);
    writer.key("sequence");
    sequence ? writer.string(docs::to_sequence(*sequence)) : writer.null();
    writer.key("behind").number(docs::count_index_changes(
        tx, found.database, sequence.value_or(kv::Versionstamp()), kMaxCountedChanges));
    const auto jobs = tx.get(index::triggers::jobs_key(keys), kv::Isolation::snapshot);
    writer.key("jobs_added").number(kv::decode_counter(jobs));
    writer.key("left_out");
    index::read_left_out(tx, keys).write(writer);
    writer.key("last_error");
    const auto error = tx.get(index::triggers::last_error_key(keys), kv::Isolation::snapshot);
    error ? writer.raw(*error) : writer.null();
    writer.key("waits");
    if (const auto failures = index::read_failures(tx, keys)) {
      writer.begin_object()
          .key("failures")
          .number(failures->count)
          .key("failed_at")
          .number(failures->last_at);
      writer.key("retry_at").number(failures->retry_at()).key("error").string(failures->error).end_object();
    } else {
      writer.null();
    }
    writer.end_object();
  });
  return json_response(200, std::move(out));
}

}  // namespace divan::api
