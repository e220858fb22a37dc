#include "divan/index/views/js_mapper.h"

#include "divan/index/views/view_batch.h"

namespace divan::index::views {
namespace {

JsFunctions::Sources sources_of(const std::map<std::string, View>& views) {
  JsFunctions::Sources sources;
  for (const auto& [name, view] : views) sources.emplace_back(name, view.map);
  return sources;
}

}  // namespace

JsMapper::JsMapper(const Origin& origin, const std::map<std::string, View>& views,
                   const std::string& signature, js::Pool& pool, std::shared_ptr<SlowDocuments> slow,
                   EmittedRows rows)
    : rows_(std::move(rows)),
      functions_(origin, sources_of(views), signature, pool, std::move(slow), rows_.terms) {}

void JsMapper::map(const SourceTexts& texts, const js::Limits& limits, ViewBatch& batch) const {
  functions_.map(texts, limits, batch,
                 [&](std::size_t document, std::size_t function, std::span<const js::Emitted> emitted) {
                   if (rows_.add)
                     return rows_.add(batch, document, texts.documents()[document].change, function, emitted);
                   for (const auto& [key, value] : emitted)
                     batch.add_row(document, static_cast<int>(function), key, value);
                 });
}

}  // namespace divan::index::views
