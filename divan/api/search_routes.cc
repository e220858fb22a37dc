// Full-text search: _search, _search_info, _search_disk_size.
// https://docs.couchdb.org/en/stable/api/ddoc/search.html
#include <fmt/core.h>

#include <functional>

#include "divan/api/function_threads.h"
#include "divan/api/routes.h"
#include "divan/api/view_queries.h"
#include "divan/base/json.h"
#include "divan/docs/partition.h"
#include "divan/docs/purge.h"
#include "divan/index/left_out.h"
#include "divan/index/search/search.h"
#include "divan/index/serving_index.h"

namespace divan::api {
namespace {

using index::search::SearchIndex;
using index::search::SearchParams;
using index::views::Update;

struct ResolvedSearch : ResolvedDesign {
  std::shared_ptr<const SearchIndex> index;
};

ResolvedSearch find_search(const Context& context, kv::Transaction& tx, const Call& call) {
  const std::string design_id = std::string(docs::kDesignPrefix) + call.path()[2];
  const std::string& name = call.path()[4];
  ResolvedSearch found{find_design(context, tx, call.path()[0], design_id), nullptr};
  for (const auto& kind : context.kinds) {
    if (kind->name() != index::search::kKind) continue;
    for (const auto& index : kind->indexes(design_id, found.body, &found.database)) {
      if (index->name() == name) found.index = std::dynamic_pointer_cast<const SearchIndex>(index);
    }
  }
  if (found.index) return found;
  const auto definitions = json::member(found.body, index::search::kKind);
  if (definitions && json::member(*definitions, name))
    throw Error(400, "invalid_design_doc", fmt::format("index `{}` must have parameter `index`", name));
  throw not_found(name + " not found.");
}

SearchParams parse_request(Call& call) {
  call.allow("GET,POST");
  std::vector<std::pair<std::string, std::string>> params;
  for (const auto& [name, text] : call.params()) {
    // As CouchDB, which takes only the partition from the URL of a POST.
    if (call.method() == "GET" || name == "partition") params.emplace_back(name, text);
  }
  auto texts = index::search::params_of_url(params);
  if (call.method() == "POST") {
    for (auto& param : index::search::params_of_body(call.json_body())) texts.push_back(std::move(param));
  }
  return index::search::parse_params(texts);
}

// Throws bad_request if the parameters do not fit the index.
void check_params(const SearchParams& params, const docs::Database& database, const SearchIndex& index) {
  if (params.partition && !index.is_partitioned())
    throw bad_request("`partition` not supported on this index");
  if (!params.partition && index.is_partitioned())
    throw bad_request("`partition` parameter is mandatory for queries to this index.");
  if (params.partition) docs::check_partition(*params.partition);
  const auto most = database.is_partitioned() ? index::search::kPartitionedLimit : index::search::kMaxLimit;
  if (params.limit.value_or(0) > most)
    throw Error(400, "query_parse_error",
                fmt::format("Value for limit is too large, must not exceed {}", most));
  if (params.partition &&
      (!params.counts.empty() || !params.ranges.empty() || !params.drilldown.empty() || params.group_field))
    throw bad_request(
        "`partition` and any of `drilldown`, `ranges`, `group_field`, `group_sort`, `group_limit` or "
        "`group_by` are incompatible");
}

// A search, which waits until its index has everything that was written before it arrived, unless its
// `update` or `stale` says otherwise.
class SearchCall {
 public:
  SearchCall(const Context& context, Call& call)
      : context_(context), call_(call), params_(parse_request(call)), poll_(context, call) {}

  Async<std::string> run() {
    const std::function<bool()> open = [this] { return this->open(); };
    co_await poll_.wait(open);
    const index::search::Search search(index_, std::move(params_));
    std::string response;
    const auto run = [&] {
      const auto tx = context_.store.begin();
      const auto database = context_.catalog.open(*tx, call_.path()[0]);
      if (database.number() != database_) throw not_found("Database does not exist.");
      response = search.run(*tx, database, sequence_);
    };
    co_await call_.executor().run_on(context_.function_threads, database_, FunctionUse::search, run);
    co_return response;
  }

 private:
  bool open() {
    bool ready = false;
    context_.store.run([&](kv::Transaction& tx) {
      const auto found = find_search(context_, tx, call_);
      check_params(params_, found.database, *found.index);
      index_ = found.index;
      database_ = found.database.number();
      if (params_.update != Update::wait) {
        index_ = std::dynamic_pointer_cast<const SearchIndex>(
            index::serving_index(tx, found.database, context_.kinds, found.design, found.index));
      }
      ready = poll_.is_ready(tx, found.database, *found.index, params_.update);
      sequence_ = index::read_sequence(tx, index::IndexKeys(found.database, index_->signature()),
                                       kv::Isolation::snapshot);
    });
    return ready;
  }

  const Context& context_;
  Call& call_;
  SearchParams params_;
  IndexPoll poll_;
  // Set by open():
  std::shared_ptr<const SearchIndex> index_;  // that serves the search
  std::int64_t database_ = 0;                 // its number
  kv::Versionstamp sequence_;                 // of the index
};

// `{"name": ..., "search_index": {...}}` with the members that `write` writes.
RouteResult describe(const Context& context, const Call& call,
                     const std::function<void(json::Writer&, kv::Transaction&, const ResolvedSearch&,
                                              const index::IndexKeys&)>& write) {
  call.allow("GET");
  std::string out;
  context.store.run([&](kv::Transaction& tx) {
    out.clear();
    const auto found = find_search(context, tx, call);
    const index::IndexKeys keys(found.database, found.index->signature());
    json::Writer writer(out);
    writer.begin_object().key("name").string(found.index->design_document() + "/" + call.path()[4]);
    writer.key("search_index").begin_object();
    writer.key("disk_size").number(context.store.estimate_bytes(keys.all()));
    write(writer, tx, found, keys);
    writer.end_object();
  });
  return json_response(200, std::move(out));
}

}  // namespace

Async<RouteResult> search(const Context& context, const CallPtr& call) {
  SearchCall query(context, *call);
  co_return json_response(200, co_await query.run());
}

RouteResult search_info(const Context& context, const CallPtr& call) {
  return describe(context, *call,
                  [](json::Writer& writer, kv::Transaction& tx, const ResolvedSearch& found,
                     const index::IndexKeys& keys) {
                    const auto state = index::search::read_state(tx, index::search::SearchKeys(keys));
                    writer.key("doc_count").number(state.documents);
                    // Entries of documents that were replaced are not counted.
                    writer.key("doc_del_count").number(0);
                    writer.key("updates_pending")
                        .number(docs::count_index_changes(
                            tx, found.database, index::read_sequence(tx, keys, kv::Isolation::snapshot),
                            kMaxCountedChanges));
                    writer.end_object().key("left_out");
                    index::read_left_out(tx, keys).write(writer);
                  });
}

RouteResult search_disk_size(const Context& context, const CallPtr& call) {
  return describe(context, *call,
                  [](json::Writer& writer, kv::Transaction&, const ResolvedSearch&, const index::IndexKeys&) {
                    writer.end_object();
                  });
}

}  // namespace divan::api
