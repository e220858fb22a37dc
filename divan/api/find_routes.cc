// Queries of Mango: _find, _explain.
#include <functional>

#include "divan/api/index_poll.h"
#include "divan/api/page_stream.h"
#include "divan/base/json.h"
#include "divan/docs/partition.h"
#include "divan/docs/reader.h"
#include "divan/index/serving_index.h"
#include "divan/index/views/params.h"
#include "divan/mango/explain.h"
#include "divan/mango/find.h"

namespace divan::api {
namespace {

using index::views::Update;

mango::FindRequest parse_request(const Context& context, Call& call) {
  call.allow("POST");
  const auto limit = context.config.get_int("mango", "default_limit", mango::kDefaultLimit, 0, INT64_MAX);
  auto request = mango::FindRequest::parse(call.json_body(), static_cast<std::uint64_t>(limit));
  if (const auto partition = call.param("partition")) {
    if (!request.partition.empty() && request.partition != *partition)
      throw bad_request("Conflicting value for `partition` in the body");
    docs::check_partition(*partition);
    request.partition = *partition;
  }
  return request;
}

// A query, which waits until its index has everything that was written before it arrived, unless its `update`
// is false.
class FindCall {
 public:
  FindCall(const Context& context, Call& call)
      : context_(context),
        name_(call.path()[0]),
        request_(parse_request(context, call)),
        poll_(context, call) {}

  // Waits until the index can be read.
  Async<void> wait() {
    const std::function<bool()> open = [this] { return this->open(); };
    co_await poll_.wait(open);
  }

  // After wait().
  std::unique_ptr<PageSource> pages() {
    const auto threshold = context_.config.get_int("mango", "index_scan_warning_threshold",
                                                   mango::kScanWarningThreshold, 0, INT64_MAX);
    const bool is_search = plan_.index().text != nullptr;
    mango::Find find({.store = context_.store,
                      .catalog = context_.catalog,
                      .clock = context_.clock,
                      .database = name_,
                      .known_sequence = sequence_,
                      .scan_warning_threshold = static_cast<std::uint64_t>(threshold)},
                     std::move(request_), std::move(plan_));
    if (is_search) return std::make_unique<SearchPagesOf<mango::Find>>(database_, std::move(find));
    return std::make_unique<PagesOf<mango::Find>>(std::move(find));
  }

 private:
  bool open() {
    bool ready = false;
    context_.store.run([&](kv::Transaction& tx) {
      const auto database = context_.catalog.open(tx, name_);
      plan_ = mango::make_plan(request_, mango::indexes_of(tx, database, context_.kinds), true,
                               database.is_partitioned());
      mango::check_bookmark(request_, plan_);
      database_ = database.number();
      ready = true;
      if (plan_.index().is_all_documents() || plan_.has_no_results) return;
      const bool waits = request_.waits_for_index();
      if (!waits && plan_.index().views) use_serving_index(tx, database);
      const auto& index = plan_.index().built();
      ready = poll_.is_ready(tx, database, index, waits ? Update::wait : Update::never);
      sequence_ =
          index::read_sequence(tx, index::IndexKeys(database, index.signature()), kv::Isolation::snapshot);
    });
    return ready;
  }

  // If another index was added to the design document, all of its indexes are built again. Until then the old
  // ones have the same rows.
  void use_serving_index(kv::Transaction& tx, const docs::Database& database) {
    mango::Index& chosen = plan_.candidates[*plan_.chosen].index;
    const auto tree = docs::read_tree(tx, database, chosen.design_document, kv::Isolation::snapshot);
    const auto serving = std::dynamic_pointer_cast<const index::views::ViewIndex>(
        index::serving_index(tx, database, context_.kinds, tree.front(), chosen.views));
    const auto* view = serving ? serving->find(chosen.name) : nullptr;
    if (view != nullptr && view->map == chosen.view().map) chosen.views = serving;
  }

  const Context& context_;
  const std::string name_;
  mango::FindRequest request_;
  IndexPoll poll_;
  // Set by open():
  mango::Plan plan_;
  std::int64_t database_ = 0;  // its number
  kv::Versionstamp sequence_;  // of the index
};

}  // namespace

Async<RouteResult> find(const Context& context, const CallPtr& call) {
  FindCall query(context, *call);
  co_await query.wait();
  co_return co_await stream_pages(context, *call, query.pages());
}

RouteResult explain(const Context& context, const CallPtr& call) {
  const auto request = parse_request(context, *call);
  mango::Plan plan;
  bool is_partitioned = false;
  context.store.run([&](kv::Transaction& tx) {
    const auto database = context.catalog.open(tx, call->path()[0]);
    is_partitioned = database.is_partitioned();
    plan = mango::make_plan(request, mango::indexes_of(tx, database, context.kinds), false, is_partitioned);
  });
  return json_response(200, mango::explain(call->path()[0], request, plan, is_partitioned));
}

}  // namespace divan::api
