#include "divan/index/views/mapper.h"

#include "divan/base/json.h"
#include "divan/docs/document.h"
#include "divan/docs/sequence.h"

namespace divan::index::views {
namespace {

std::string with_local_seq(const SourceDocument& document) {
  std::string text = document.json;
  text.pop_back();
  text += ",\"_local_seq\":";
  json::append_string(text, docs::to_sequence(document.change.sequence));
  return text + "}";
}

}  // namespace

SourceTexts::SourceTexts(std::span<const SourceDocument> documents, const ViewOptions& options)
    : documents_(documents) {
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const auto& change = documents[i].change;
    if (change.deleted || (docs::is_design(change.id) && !options.include_design)) continue;
    texts_.push_back(documents[i].json);
    if (options.local_seq) texts_.back() = own_texts_.emplace_back(with_local_seq(documents[i]));
    indices_.push_back(i);
  }
}

void SourceTexts::add_documents_before(std::size_t number, DocumentBatch& batch) const {
  const std::size_t end = number < indices_.size() ? indices_[number] : documents_.size();
  for (std::size_t i = batch.documents(); i < end; ++i) batch.add_document(documents_[i].change.id);
}

}  // namespace divan::index::views
