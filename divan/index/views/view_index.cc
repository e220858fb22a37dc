#include "divan/index/views/view_index.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/docs/document.h"
#include "divan/docs/sequence.h"
#include "divan/index/views/large_document.h"
#include "divan/index/views/reduce_tree_updater.h"
#include "divan/index/views/view_batch.h"

namespace divan::index::views {
namespace {

constexpr std::size_t kSignatureBytes = 16;
// The version of the rows' layout; part of every signature, so that a change of it rebuilds all indexes.
constexpr std::string_view kRowLayout = "view rows 4";
// A function that exceeded a limit this often in one batch fails the build.
constexpr std::size_t kMaxStrikes = 3;

// The digest of everything that the rows depend on; the encoding is unambiguous.
std::string signature_of(const std::map<std::string, View>& views, std::string_view lib,
                         const ViewOptions& options) {
  std::string text;
  json::Writer writer(text);
  writer.begin_array().string(kRowLayout).string(collation::version());
  for (const auto& [name, view] : views) {
    writer.string(name).string(view.map).string(view.reduce);
    if (view.collation == Collation::raw) writer.boolean(true);
  }
  // Without modules and options the signature is that of versions that did not support them.
  if (lib != Origin().lib) writer.string(lib);
  if (options != ViewOptions()) writer.boolean(options.include_design).boolean(options.local_seq);
  writer.end_array();
  return sha256(text, kSignatureBytes);
}

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

std::string with_local_seq(const SourceDocument& document) {
  std::string text = document.json;
  text.pop_back();
  text += ",\"_local_seq\":";
  json::append_string(text, docs::to_sequence(document.change.sequence));
  return text + "}";
}

}  // namespace

ViewIndex::ViewIndex(Origin origin, std::map<std::string, View> views, const ViewOptions& options,
                     bool automatic, js::Pool& pool, const js::Limits& limits, const FanOut& fan_out,
                     std::shared_ptr<SlowDocuments> slow)
    : ViewSet(std::move(origin), std::move(views), pool, limits, fan_out),
      options_(options),
      automatic_(automatic),
      slow_(std::move(slow)),
      signature_(signature_of(this->views(), this->origin().lib, options_)) {
  program_.id = signature_;
  program_.root = this->origin().root();
  for (const auto& [name, view] : this->views())
    program_.functions.push_back({name, view.map, this->origin().owner});
}

ViewIndex::ViewIndex(const ViewIndex& other, const js::Limits& limits)
    : ViewSet(other, limits),
      options_(other.options_),
      automatic_(other.automatic_),
      slow_(other.slow_),
      program_(other.program_),
      signature_(other.signature_) {}

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
  std::vector<std::string_view> texts;
  std::deque<std::string> own_texts;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto& change = documents[i].change;
    if (change.deleted || (docs::is_design(change.id) && !options_.include_design)) continue;
    texts.push_back(documents[i].json);
    if (options_.local_seq) texts.back() = own_texts.emplace_back(with_local_seq(documents[i]));
    indices.push_back(i);
  }
  reject_slow(documents, indices);
  std::vector<std::size_t> strikes(program_.functions.size());
  std::size_t done = 0;
  // Adds the documents up to the next one that has not been mapped.
  const auto add_documents = [&] {
    const std::size_t end = done < indices.size() ? indices[done] : documents.size();
    for (std::size_t i = batch->documents(); i < end; ++i) batch->add_document(documents[i].change.id);
  };
  add_documents();
  while (done < texts.size() && batch->bytes() < kFullBatchBytes) {
    const std::size_t first = done;
    const js::MapResult result = pool().map(program_, std::span(texts).subspan(first), limits());
    done += result.documents();
    add_documents();
    for (std::size_t d = 0; d < result.documents(); ++d)
      add_rows(result, d, documents, indices[first + d], strikes, *batch);
    // If some documents are left, time was up or they were too much for one message; what there is can be
    // written meanwhile. But a function with strikes is called for the rest of them in this batch.
    if (std::all_of(strikes.begin(), strikes.end(), [](std::size_t count) { return count == 0; })) break;
  }
  return batch;
}

// Adds the rows that the functions emitted for one document.
void ViewIndex::add_rows(const js::MapResult& result, std::size_t number,
                         std::span<const SourceDocument> documents, std::size_t index,
                         std::vector<std::size_t>& strikes, ViewBatch& batch) const {
  const std::string& id = documents[index].change.id;
  for (std::size_t f = 0; f < result.functions(); ++f) {
    for (const auto& [key, value] : result.emitted(number, f))
      batch.add_row(index, static_cast<int>(f), key, value);
    const js::Failure* failure = result.failure(number, f);
    if (failure == nullptr) continue;
    const js::Function& function = program_.functions[f];
    batch.add_failure(index, fmt::format("View `{}`: {}", function.name, failure->message));
    const std::string what =
        fmt::format("Map function `{}` of `{}` in `{}` failed on document `{}`: {}", function.name,
                    function.owner.design_document, function.owner.database, id, failure->message);
    pool().log_failure(function, what);
    const bool threw =
        failure->kind == js::FailureKind::exception || failure->kind == js::FailureKind::too_large;
    if (slow_ && failure->kind == js::FailureKind::timeout)
      slow_->add(
          {origin().owner.number, signature_, f, std::string(documents[index].change.sequence.bytes())},
          invocation(), what);
    if (!threw && ++strikes[f] >= kMaxStrikes) throw FunctionFailed(what);
  }
}

// The time limit for one invocation of a function.
Duration ViewIndex::invocation() const { return limits().invocation.value_or(pool().invocation()); }

// Throws if functions are known to have timed out for so many of these documents that the index cannot be
// built, without running them again.
void ViewIndex::reject_slow(std::span<const SourceDocument> documents,
                            std::span<const std::size_t> indices) const {
  if (!slow_ || slow_->empty()) return;
  const Duration limit = invocation();
  std::vector<std::size_t> strikes(program_.functions.size());
  for (const std::size_t index : indices) {
    for (std::size_t f = 0; f < strikes.size(); ++f) {
      const auto what = slow_->find(
          {origin().owner.number, signature_, f, std::string(documents[index].change.sequence.bytes())},
          limit);
      if (what && ++strikes[f] >= kMaxStrikes) throw FunctionFailed(*what);
    }
  }
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
