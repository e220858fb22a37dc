#include "sim/mapper.h"

#include <fmt/core.h>

#include "divan/base/digest.h"
#include "divan/base/json.h"
#include "divan/docs/document.h"
#include "divan/index/views/view_batch.h"

namespace divan::sim {
namespace {

// The rows of the server's views, with a record of the attempt that writes them.
class Batch final : public index::MappedBatch {
 public:
  explicit Batch(const MapperKind& kind) : kind_(kind), rows_(1) {}

  index::views::ViewBatch& rows_of() { return rows_; }

  std::size_t documents() const override { return rows_.documents(); }
  std::size_t prepare(kv::Database& store, const index::IndexKeys& keys, std::size_t first,
                      const index::IndexedSoFar& so_far) override {
    return rows_.prepare(store, keys, first, so_far);
  }
  void write(kv::Transaction& tx, const index::IndexKeys& keys) const override {
    rows_.write(tx, keys);
    const auto& job = kind_.building().job;
    note(tx, AttemptNote{"views", job.id, job.lock}, kind_.token());
  }

 private:
  const MapperKind& kind_;
  index::views::ViewBatch rows_;
};

class MapperIndex final : public index::Index, public std::enable_shared_from_this<MapperIndex> {
 public:
  MapperIndex(const MapperKind& kind, std::string design_document, int function)
      : kind_(kind),
        design_document_(std::move(design_document)),
        function_(function),
        signature_(signature_of(function)) {}

  std::string_view kind() const override { return "views"; }
  const std::string& signature() const override { return signature_; }
  const std::string& design_document() const override { return design_document_; }
  bool automatic() const override { return true; }
  index::IndexPtr within(const index::BuildLimits&) const override { return shared_from_this(); }
  std::unique_ptr<index::IndexWork> more_work(kv::Database&, const index::IndexKeys&, bool) const override {
    return nullptr;
  }
  bool needs_work(kv::Transaction&, const index::IndexKeys&) const override { return false; }

  std::unique_ptr<index::MappedBatch> map(std::span<const index::SourceDocument> documents) const override {
    Rng& rng = kind_.world().rng();
    kind_.world().pause(between(rng, {}, kind_.longest()));
    // Sometimes only the first documents are mapped in time.
    if (rng.below(4) == 0) documents = documents.first(1 + rng.below(documents.size()));
    auto batch = std::make_unique<Batch>(kind_);
    for (std::size_t i = 0; i < documents.size(); ++i) {
      const docs::Change& change = documents[i].change;
      batch->rows_of().add_document(change.id);
      if (change.deleted || docs::is_design(change.id)) continue;
      for (const auto& [key, value] : emitted(function_, documents[i].json))
        batch->rows_of().add_row(i, 0, key, value);
    }
    return batch;
  }

 private:
  const MapperKind& kind_;
  const std::string design_document_;
  const int function_;
  const std::string signature_;
};

}  // namespace

Emitted emitted(int function, std::string_view document) {
  const auto member = [&](std::string_view name) {
    return std::string(json::member(document, name).value_or("null"));
  };
  Emitted rows{{fmt::format("[{},{}]", function, member("k")), member("_rev")}};
  if (const auto conflicts = member("_conflicts"); conflicts != "null") rows.emplace_back("\"c\"", conflicts);
  return rows;
}

std::string design_body(int function) {
  const std::string trigger = fmt::format(
      R"(,"triggers":{{"t":{{"job":{{"type":"{}","data":{{"f":{}}}}}}}}})", kTriggeredType, function);
  return fmt::format(R"({{"views":{{"v":{{"map":"{}"}}}}{}}})", function,
                     has_trigger(function) ? trigger : "");
}

std::optional<int> function_of(std::string_view body) {
  const auto views = json::member(body, "views");
  const auto view = views ? json::member(*views, "v") : std::nullopt;
  const auto map = view ? json::member(*view, "map") : std::nullopt;
  if (!map) return std::nullopt;
  return std::stoi(json::string_value(*map).value());
}

std::string signature_of(int function) { return sha256(fmt::format("function {}", function), 16); }

std::vector<index::IndexPtr> MapperKind::indexes(const std::string& design_id, std::string_view body,
                                                 const docs::Database*) const {
  const auto function = function_of(body);
  if (!function) return {};
  return {std::make_shared<MapperIndex>(*this, design_id, *function)};
}

}  // namespace divan::sim
