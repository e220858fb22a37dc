// Views, and information about their indexes.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "divan/api/index_poll.h"
#include "divan/api/index_waits.h"
#include "divan/api/queries.h"
#include "divan/api/routes.h"
#include "divan/base/bytes.h"
#include "divan/base/json.h"
#include "divan/docs/purge.h"
#include "divan/docs/reader.h"
#include "divan/docs/sequence.h"
#include "divan/http/etag.h"
#include "divan/index/builds.h"
#include "divan/index/left_out.h"
#include "divan/index/serving_index.h"
#include "divan/index/views/query.h"
#include "divan/index/views/view_kind.h"

namespace divan::api {
namespace {

using index::views::Query;
using index::views::Update;
using index::views::View;
using index::views::ViewIndex;
using index::views::ViewParams;

constexpr std::int64_t kMaxPending = 100'000;

struct ResolvedView {
  docs::Database database;
  docs::Leaf design;
  std::string body;
  std::shared_ptr<const ViewIndex> index;
};

// The views of a design document; throws not_found in CouchDB's words if there are none.
ResolvedView find_views(const Context& context, kv::Transaction& tx, const std::string& name,
                        const std::string& design_id) {
  if (tx.is_remote()) {
    kv::Prefetch reads;
    if (const auto known = context.catalog.prefetch(reads, name)) {
      reads.range(known->keys().leaves(design_id));
      docs::prefetch_last_sequence(reads, *known);
    }
    tx.prefetch(reads);
  }
  auto database = context.catalog.open(tx, name);
  const auto tree = docs::read_tree(tx, database, design_id, kv::Isolation::snapshot);
  if (tree.empty()) throw not_found("missing");
  if (tree.front().deleted) throw not_found("deleted");
  std::string body = docs::read_body(tx, database, tree.front());
  for (const auto& kind : context.kinds) {
    for (const auto& index : kind->indexes(design_id, body, &database)) {
      if (auto views = std::dynamic_pointer_cast<const ViewIndex>(index))
        return {std::move(database), tree.front(), std::move(body), std::move(views)};
    }
  }
  return {std::move(database), tree.front(), std::move(body), nullptr};
}

class QueryPages final : public PageSource {
 public:
  explicit QueryPages(Query query) : query_(std::move(query)) {}
  bool next(std::string& out) override { return query_.next(out); }

 private:
  Query query_;
};

// One or several queries. With update=true they wait until their index has everything that was written before
// they arrived.
class ViewQueries {
 public:
  ViewQueries(const Context& context, Call& call, std::vector<ViewParams> queries, bool several)
      : context_(context),
        call_(call),
        queries_(std::move(queries)),
        several_(several),
        name_(call_.path()[0]),
        design_id_(std::string(docs::kDesignPrefix) + call_.path()[2]),
        view_name_(call_.path()[4]),
        poll_(context, call) {}

  // Waits until the rows can be read.
  Async<void> wait() {
    const std::function<bool()> open = [this] { return this->open(); };
    co_await poll_.wait(open);
  }

  // After wait().
  const std::string& etag() const { return etag_; }
  std::unique_ptr<PageSource> pages() const {
    const View& view = *index_->find(view_name_);
    std::vector<std::unique_ptr<PageSource>> pages;
    for (const auto& params : queries_) {
      pages.push_back(std::make_unique<QueryPages>(
          Query(context_.store, context_.catalog, name_, index_, view, params, sequence_)));
    }
    return several_ ? multi_query_pages(std::move(pages)) : std::move(pages.front());
  }

 private:
  // Returns true if the rows can be read now.
  bool open() {
    bool ready = false;
    context_.store.run([&](kv::Transaction& tx) {
      const auto found = find_views(context_, tx, name_, design_id_);
      index_ = found.index;
      if (index_ && !any(Update::wait)) index_ = serving(tx, found);
      if (!index_) index::views::check_language(found.body, view_name_);
      if (!index_ || !index_->find(view_name_)) throw not_found("missing_named_view");
      const View& view = *index_->find(view_name_);
      for (const auto& params : queries_)
        check_params(params, !view.reduce.empty(), view.collation, index_->origin().is_partitioned);
      ready = poll_.is_ready(tx, found.database, *found.index, most_demanding());
      if (!ready) return;
      sequence_ = index::read_sequence(tx, index::IndexKeys(found.database, index_->signature()),
                                       kv::Isolation::snapshot);
      // A POST is not repeated with If-None-Match.
      if (call_.method() == "GET") etag_ = etag_of(tx, found, *index_, sequence_);
    });
    return ready;
  }

  // The index that serves requests that do not wait.
  std::shared_ptr<const ViewIndex> serving(kv::Transaction& tx, const ResolvedView& found) const {
    const auto index = index::serving_index(tx, found.database, context_.kinds, found.design, found.index);
    auto views = std::dynamic_pointer_cast<const ViewIndex>(index);
    return views && views->find(view_name_) ? views : found.index;
  }

  // Depends on the rows, the parameters, and the documents if they are included.
  std::string etag_of(kv::Transaction& tx, const ResolvedView& found, const ViewIndex& index,
                      const kv::Versionstamp& sequence) const {
    std::string state = index.signature() + view_name_;
    state += sequence.bytes();
    for (const auto& [name, value] : call_.params()) {
      (state += '\0') += name;
      (state += '\0') += value;
    }
    const js::ReduceLimit limit = index.pool().reduce_limit();
    state += fmt::format("{}/{}/{}", static_cast<int>(limit.mode), limit.threshold, limit.ratio);
    if (queries_.front().include_docs) state += docs::last_sequence(tx, found.database).bytes();
    return http::etag_of(state);
  }

  Update most_demanding() const {
    if (any(Update::wait)) return Update::wait;
    return any(Update::lazy) ? Update::lazy : Update::never;
  }
  bool any(Update update) const {
    return std::any_of(queries_.begin(), queries_.end(),
                       [&](const auto& params) { return params.update == update; });
  }

  const Context& context_;
  Call& call_;
  const std::vector<ViewParams> queries_;
  const bool several_;
  const std::string name_;
  const std::string design_id_;
  const std::string view_name_;
  IndexPoll poll_;
  std::shared_ptr<const ViewIndex> index_;  // that serves the queries; set by open()
  kv::Versionstamp sequence_;               // of the index
  std::string etag_;
};

}  // namespace

Async<RouteResult> view(const Context& context, const CallPtr& call) {
  call->allow("GET,POST");
  const bool several = is_multi_query(*call, 5);
  auto params = several ? parse_queries(*call) : std::vector{parse_query_params(*call)};
  ViewQueries queries(context, *call, std::move(params), several);
  co_await queries.wait();
  if (auto unchanged = not_modified(*call, queries.etag())) co_return *std::move(unchanged);
  co_return co_await stream_pages(context, *call, queries.pages(), queries.etag());
}

RouteResult design_info(const Context& context, const CallPtr& call) {
  call->allow("GET");
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto found =
        find_views(context, tx, call->path()[0], std::string(docs::kDesignPrefix) + call->path()[2]);
    if (!found.index) throw not_found("missing");
    const index::IndexKeys keys(found.database, found.index->signature());
    const auto sequence = index::read_sequence(tx, keys, kv::Isolation::snapshot);
    const std::string build_id = index::build_id(found.database, found.index->signature());
    const auto job = context.queue.find(tx, found.index->kind(), build_id);
    const bool running = job && job->state == jobs::State::running;
    json::Writer writer(out);
    writer.begin_object().key("name").string(call->path()[2]).key("view_index").begin_object();
    writer.key("signature")
        .string(to_hex(found.index->signature()))
        .key("language")
        .string(found.index->mapper().language());
    writer.key("updater_running").boolean(running);
    writer.key("waiting_clients").number(static_cast<std::int64_t>(context.index_waits.count(build_id)));
    writer.key("update_seq").string(docs::to_sequence(sequence));
    const std::int64_t pending = docs::count_index_changes(tx, found.database, sequence, kMaxPending);
    writer.key("updates_pending").begin_object();
    for (const char* of : {"minimum", "preferred", "total"}) writer.key(of).number(pending);
    writer.end_object();
    writer.key("collator_versions").begin_array().string(collation::version()).end_array();
    const std::int64_t bytes = context.store.estimate_bytes(keys.all());
    writer.key("sizes").begin_object();
    for (const char* kind : {"file", "external", "active"}) writer.key(kind).number(bytes);
    writer.end_object();
    // Constants: the store compacts itself, an index has purges in its `update_seq`, and commits are durable
    // before the response.
    writer.key("compact_running")
        .boolean(false)
        .key("waiting_commit")
        .boolean(false)
        .key("purge_seq")
        .number(0);
    writer.key("left_out");
    index::read_left_out(tx, keys).write(writer);
    if (job) {
      writer.key("build").begin_object().key("state").string(jobs::state_name(job->state));
      if (!job->progress.empty()) writer.key("progress").raw(job->progress);
      if (!job->last_error.empty()) writer.key("last_error").string(job->last_error);
      writer.end_object();
    }
    writer.end_object().end_object();
  });
  return json_response(200, std::move(out));
}

}  // namespace divan::api
