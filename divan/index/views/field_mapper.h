// The rows of Mango's indexes (field_map.h), computed in the server.
#pragma once

#include "divan/index/views/field_map.h"
#include "divan/index/views/mapper.h"

namespace divan::index::views {

class FieldMapper final : public Mapper {
 public:
  /// The definitions of the views, in the order of their numbers.
  explicit FieldMapper(std::vector<FieldMap> maps) : maps_(std::move(maps)) {}

  std::string_view language() const override { return kQueryLanguage; }
  void map(const SourceTexts& texts, const js::Limits& limits, ViewBatch& batch) const override;

  const FieldMap& view(int number) const { return maps_[static_cast<std::size_t>(number)]; }

 private:
  const std::vector<FieldMap> maps_;
};

}  // namespace divan::index::views
