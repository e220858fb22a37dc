// Spatial queries: _geo, _geo_info, _geo_cleanup.
#include <functional>

#include "divan/api/page_stream.h"
#include "divan/api/view_queries.h"
#include "divan/base/json.h"
#include "divan/docs/purge.h"
#include "divan/index/geo/query.h"
#include "divan/index/left_out.h"
#include "divan/index/serving_index.h"

namespace divan::api {
namespace {

using index::geo::GeoIndex;
using index::geo::GeoParams;
using index::views::Update;

// A spatial index, with the others of its design document.
struct ResolvedGeo : ResolvedDesign {
  std::shared_ptr<const GeoIndex> index;
};

ResolvedGeo find_geo(const Context& context, kv::Transaction& tx, const Call& call) {
  const std::string design_id = std::string(docs::kDesignPrefix) + call.path()[2];
  ResolvedGeo found{find_design(context, tx, call.path()[0], design_id), nullptr};
  for (const auto& kind : context.kinds) {
    if (kind->name() != index::geo::kKind) continue;
    for (const auto& index : kind->indexes(design_id, found.body, &found.database))
      found.index = std::dynamic_pointer_cast<const GeoIndex>(index);
  }
  if (!found.index || !found.index->find(call.path()[4])) throw not_found("missing_named_index");
  return found;
}

GeoParams parse_request(Call& call) {
  call.allow("GET,POST");
  if (call.param("partition"))
    throw Error(400, "query_parse_error", "`partition` parameter is not supported by spatial indexes");
  index::geo::GeoParamTexts texts;
  for (const auto& [name, text] : call.params()) texts.emplace_back(name, text);
  if (call.method() == "POST") {
    for (auto& param : index::geo::params_of_body(call.json_body())) texts.push_back(std::move(param));
  }
  return index::geo::parse_params(texts);
}

// A query, which waits until its index has everything that was written before it arrived, unless its `update`
// says otherwise.
class GeoCall {
 public:
  GeoCall(const Context& context, Call& call)
      : context_(context), call_(call), params_(parse_request(call)), poll_(context, call) {}

  // Waits until the index can be read.
  Async<void> wait() {
    const std::function<bool()> open = [this] { return this->open(); };
    co_await poll_.wait(open);
  }

  // After wait().
  std::unique_ptr<PageSource> pages() {
    return std::make_unique<SearchPagesOf<index::geo::GeoQuery>>(database_, context_.store, context_.catalog,
                                                                 call_.path()[0], index_, call_.path()[4],
                                                                 std::move(params_), sequence_);
  }

 private:
  bool open() {
    bool ready = false;
    context_.store.run([&](kv::Transaction& tx) {
      const auto found = find_geo(context_, tx, call_);
      index_ = found.index;
      database_ = found.database.number();
      if (params_.update != Update::wait) use_serving_index(tx, found);
      ready = poll_.is_ready(tx, found.database, *found.index, params_.update);
      sequence_ = index::read_sequence(tx, index::IndexKeys(found.database, index_->signature()),
                                       kv::Isolation::snapshot);
    });
    return ready;
  }

  void use_serving_index(kv::Transaction& tx, const ResolvedGeo& found) {
    const auto serving = std::dynamic_pointer_cast<const GeoIndex>(
        index::serving_index(tx, found.database, context_.kinds, found.design, found.index));
    if (serving && serving->find(call_.path()[4])) index_ = serving;
  }

  const Context& context_;
  Call& call_;
  GeoParams params_;
  IndexPoll poll_;
  // Set by open():
  std::shared_ptr<const GeoIndex> index_;  // that serves the query
  std::int64_t database_ = 0;              // its number
  kv::Versionstamp sequence_;              // of the index
};

}  // namespace

Async<RouteResult> geo(const Context& context, const CallPtr& call) {
  GeoCall query(context, *call);
  co_await query.wait();
  co_return co_await stream_pages(context, *call, query.pages());
}

RouteResult geo_info(const Context& context, const CallPtr& call) {
  call->allow("GET");
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto found = find_geo(context, tx, *call);
    const index::IndexKeys keys(found.database, found.index->signature());
    const std::int64_t bytes = context.store.estimate_bytes(keys.all());
    json::Writer writer(out);
    writer.begin_object().key("name").string(found.index->design_document() + "/" + call->path()[4]);
    writer.key("geo_index").begin_object();
    writer.key("doc_count")
        .number(found.index->count_documents(tx, keys, *found.index->find(call->path()[4])));
    writer.key("disk_size").number(bytes).key("data_size").number(bytes);
    writer.end_object();
    const auto sequence = index::read_sequence(tx, keys, kv::Isolation::snapshot);
    writer.key("updates_pending")
        .number(docs::count_index_changes(tx, found.database, sequence, kMaxCountedChanges));
    writer.key("left_out");
    index::read_left_out(tx, keys).write(writer);
    writer.end_object();
  });
  return json_response(200, std::move(out));
}

}  // namespace divan::api
