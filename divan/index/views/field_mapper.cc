#include "divan/index/views/field_mapper.h"

#include "divan/base/error.h"
#include "divan/index/views/view_batch.h"

namespace divan::index::views {

void FieldMapper::map(const SourceTexts& texts, const js::Limits&, ViewBatch& batch) const {
  texts.add_documents_before(0, batch);
  for (std::size_t number = 0; number < texts.size(); ++number) {
    if (batch.bytes() >= kFullBatchBytes) return;
    const std::size_t index = texts.index(number);
    texts.add_documents_before(number + 1, batch);
    for (std::size_t view = 0; view < maps_.size(); ++view) {
      try {
        if (const auto key = maps_[view].key_of(texts.text(number)))
          batch.add_row(index, static_cast<int>(view), *key, "null");
      } catch (const Error& error) {  // the filter takes too long
        batch.add_failure(index, error.reason());
      }
    }
  }
}

}  // namespace divan::index::views
