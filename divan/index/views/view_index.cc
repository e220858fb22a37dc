#include "divan/index/views/view_index.h"

#include <algorithm>

#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/index/views/field_map.h"
#include "divan/index/views/large_document.h"
#include "divan/index/views/reduce_tree_updater.h"
#include "divan/index/views/view_batch.h"

namespace divan::index::views {
namespace {

// The version of the rows' layout; part of every signature, so that a change of it rebuilds all indexes.
constexpr std::string_view kRowLayout = "view rows 4";
// The same for Mango's indexes, with the version of their selectors.
constexpr std::string_view kFieldRowLayout = "field rows 4/1";

// A piece of a view's reduce nodes.
class ReduceNodeWork final : public IndexWork {
 public:
  ReduceNodeWork(int view, ReduceNodeWrites writes) : view_(view), writes_(std::move(writes)) {}
  void write(kv::Transaction& tx, const IndexKeys& keys) const override {
    writes_.write(tx, ReduceNodeKeys(keys, view_));
  }

 private:
  const int view_;
  const ReduceNodeWrites writes_;
};

}  // namespace

// The encoding is unambiguous.
std::string signature_of(const std::map<std::string, View>& views, std::string_view language,
                         std::string_view lib, const ViewOptions& options) {
  std::string text;
  json::Writer writer(text);
  writer.begin_array().string(language == kQueryLanguage ? kFieldRowLayout : kRowLayout);
  writer.string(collation::version());
  for (const auto& [name, view] : views) {
    writer.string(name).string(view.map).string(view.reduce);
    if (view.collation == Collation::raw) writer.boolean(true);
  }
  // Without modules and options the signature is that of versions that did not support them.
  if (lib != Origin().lib) writer.string(lib);
  if (options != ViewOptions()) writer.boolean(options.include_design).boolean(options.local_seq);
  if (options.is_partitioned) writer.string("partitioned");
  writer.end_array();
  return sha256(text, kSignatureBytes);
}

ViewIndex::ViewIndex(Origin origin, std::map<std::string, View> views, const ViewOptions& options,
                     bool automatic, std::string signature, std::shared_ptr<const Mapper> mapper,
                     js::Pool& pool, const js::Limits& limits, const FanOut& fan_out)
    : ViewSet(std::move(origin), std::move(views), pool, limits, fan_out),
      options_(options),
      automatic_(automatic),
      signature_(std::move(signature)),
      mapper_(std::move(mapper)) {}

ViewIndex::ViewIndex(const ViewIndex& other, const js::Limits& limits)
    : ViewSet(other, limits),
      options_(other.options_),
      automatic_(other.automatic_),
      signature_(other.signature_),
      mapper_(other.mapper_) {}

IndexPtr ViewIndex::within(const BuildLimits& build) const {
  js::Limits changed = limits();
  changed.urgent = build.urgent;
  changed.waited_for = build.waited_for;
  changed.on_slow = build.on_slow;
  changed.stop = build.stop;
  return std::make_shared<ViewIndex>(*this, changed);
}

std::unique_ptr<MappedBatch> ViewIndex::map(std::span<const SourceDocument> documents) const {
  auto batch = std::make_unique<ViewBatch>(views().size(), shared_from_this());
  mapper_->map(SourceTexts(documents, options_), limits(), *batch);
  return batch;
}

std::unique_ptr<IndexWork> ViewIndex::more_work(kv::Database& store, const IndexKeys& keys,
                                                bool resume_only) const {
  if (auto work = remove_interrupted_document(store, keys, views().size())) return work;
  for (const auto& [name, view] : views()) {
    if (!view.has_reduce_nodes()) continue;
    if (auto writes = ReduceTreeUpdater(store, keys, *this, view).build_piece(resume_only))
      return std::make_unique<ReduceNodeWork>(view.number, *std::move(writes));
  }
  return nullptr;
}

bool ViewIndex::needs_work(kv::Transaction& tx, const IndexKeys& keys) const {
  return std::any_of(views().begin(), views().end(), [&](const auto& named) {
    const View& view = named.second;
    return view.has_reduce_nodes() &&
           !read_reduce_tree_state(tx, ReduceNodeKeys(keys, view.number)).settled();
  });
}

}  // namespace divan::index::views
