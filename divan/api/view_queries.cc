#include "divan/api/view_queries.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "divan/base/error.h"
#include "divan/http/etag.h"
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

}  // namespace

ResolvedDesign find_design(const Context& context, kv::Transaction& tx, const std::string& name,
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
  return {std::move(database), tree.front(), std::move(body)};
}

ResolvedViews find_views(const Context& context, kv::Transaction& tx, const std::string& name,
                         const std::string& design_id) {
  ResolvedViews found{find_design(context, tx, name, design_id), nullptr};
  for (const auto& kind : context.kinds) {
    for (const auto& index : kind->indexes(design_id, found.body, &found.database)) {
      found.index = std::dynamic_pointer_cast<const ViewIndex>(index);
      if (found.index) return found;
    }
  }
  return found;
}

ViewQueries::ViewQueries(const Context& context, Call& call, const std::string& design, std::string view,
                         std::vector<ViewParams> queries, bool several)
    : context_(context),
      call_(call),
      queries_(std::move(queries)),
      several_(several),
      name_(call_.path()[0]),
      design_id_(std::string(docs::kDesignPrefix) + design),
      view_name_(std::move(view)),
      poll_(context, call) {}

Async<void> ViewQueries::wait() {
  const std::function<bool()> open = [this] { return this->open(); };
  co_await poll_.wait(open);
}

std::unique_ptr<PageSource> ViewQueries::pages() const {
  const View& view = *index_->find(view_name_);
  std::vector<std::unique_ptr<PageSource>> pages;
  for (const auto& params : queries_) {
    pages.push_back(std::make_unique<PagesOf<Query>>(context_.store, context_.catalog, name_, index_, view,
                                                     params, sequence_));
  }
  return several_ ? multi_query_pages(std::move(pages)) : std::move(pages.front());
}

// Returns true if the rows can be read now.
bool ViewQueries::open() {
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
std::shared_ptr<const ViewIndex> ViewQueries::serving(kv::Transaction& tx, const ResolvedViews& found) const {
  const auto index = index::serving_index(tx, found.database, context_.kinds, found.design, found.index);
  auto views = std::dynamic_pointer_cast<const ViewIndex>(index);
  return views && views->find(view_name_) ? views : found.index;
}

// Depends on the rows, the parameters, and the documents if they are included.
std::string ViewQueries::etag_of(kv::Transaction& tx, const ResolvedViews& found, const ViewIndex& index,
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

Update ViewQueries::most_demanding() const {
  if (any(Update::wait)) return Update::wait;
  return any(Update::lazy) ? Update::lazy : Update::never;
}

bool ViewQueries::any(Update update) const {
  return std::any_of(queries_.begin(), queries_.end(),
                     [&](const auto& params) { return params.update == update; });
}

}  // namespace divan::api
