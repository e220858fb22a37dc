// A full-text index of a design document.
#pragma once

#include <memory>
#include <string>

#include "divan/index/search/text_map.h"
#include "divan/index/views/js_functions.h"
#include "divan/text/analyzer.h"

namespace divan::index::search {

inline constexpr std::string_view kKind = "indexes";

/// See index.h. Immutable, hence thread-safe.
class SearchIndex final : public Index {
 public:
  struct Definition {
    std::string design_document;
    std::string name;
    std::string signature;
    bool is_automatic = true;
    bool is_partitioned = false;  ///< queries are of one partition
    std::shared_ptr<const text::Analyzer> analyzer;
    std::shared_ptr<const views::JsFunctions> functions;  ///< one; null if it is one of Mango
    std::shared_ptr<const TextMap> text_map;              ///< null unless it is one of Mango
  };
  SearchIndex(Definition definition, const js::Limits& limits)
      : definition_(std::move(definition)), limits_(limits) {}

  std::string_view kind() const override { return kKind; }
  const std::string& signature() const override { return definition_.signature; }
  const std::string& design_document() const override { return definition_.design_document; }
  std::string_view name() const override { return definition_.name; }
  bool automatic() const override { return definition_.is_automatic; }
  IndexPtr within(const BuildLimits& limits) const override;
  std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const override;
  std::unique_ptr<IndexWork> more_work(kv::Database& store, const IndexKeys& keys,
                                       bool resume_only) const override;
  bool needs_work(kv::Transaction& tx, const IndexKeys& keys) const override;

  bool is_partitioned() const { return definition_.is_partitioned; }
  const text::Analyzer& analyzer() const { return *definition_.analyzer; }
  /// Null unless it is an index of Mango.
  const TextMap* text_map() const { return definition_.text_map.get(); }

 private:
  const Definition definition_;
  const js::Limits limits_;
};

}  // namespace divan::index::search
