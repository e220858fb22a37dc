#include "divan/mango/indexes.h"

#include "divan/base/error.h"
#include "divan/docs/reader.h"
#include "divan/index/views/field_mapper.h"

namespace divan::mango {

using index::views::FieldMapper;
using index::views::ViewIndex;

const index::views::FieldMap& Index::map() const {
  return dynamic_cast<const FieldMapper&>(views->mapper()).view(view().number);
}

void Index::write(json::Writer& writer) const {
  writer.begin_object().key("ddoc");
  is_all_documents() ? writer.null() : writer.string(design_document);
  writer.key("name").string(name).key("type").string(is_all_documents() ? "special" : "json");
  if (!is_all_documents()) writer.key("partitioned").boolean(is_partitioned());
  writer.key("def").begin_object().key("fields").begin_array();
  if (is_all_documents()) {
    writer.begin_object().key("_id").string("asc").end_object();
  } else {
    for (const auto& field : map().fields)
      writer.begin_object().key(field.name).string(field.direction).end_object();
  }
  writer.end_array();
  if (is_partial()) writer.key("partial_filter_selector").raw(map().filter_json);
  writer.end_object().end_object();
}

namespace {

void add_indexes(std::vector<Index>& indexes, const index::IndexPtr& index) {
  const auto views = std::dynamic_pointer_cast<const ViewIndex>(index);
  if (!views) return;
  for (auto& found : indexes_in(views)) indexes.push_back(std::move(found));
}

}  // namespace

std::vector<Index> indexes_in(const std::shared_ptr<const ViewIndex>& views) {
  std::vector<Index> indexes;
  if (views->mapper().language() != index::views::kQueryLanguage) return indexes;
  for (const auto& [name, view] : views->views()) {
    Index index{.design_document = views->design_document(), .name = name, .columns = {}, .views = views};
    for (const auto& field : index.map().fields) index.columns.push_back(field.path);
    indexes.push_back(std::move(index));
  }
  return indexes;
}

std::vector<Index> indexes_of(kv::Transaction& tx, const docs::Database& database,
                              const index::Kinds& kinds) {
  std::vector<Index> indexes(1);
  for (const auto& [id, winner] : index::design_documents(tx, database)) {
    const std::string body = docs::read_body(tx, database, winner);
    const auto language = json::member(body, "language");
    if (!language || json::string_value(*language) != index::views::kQueryLanguage) continue;
    for (const auto& kind : kinds) {
      try {
        for (const auto& index : kind->indexes(id, body, &database)) add_indexes(indexes, index);
      } catch (const Error&) {}  // malformed: defines no index; ken has logged it
    }
  }
  return indexes;
}

}  // namespace divan::mango
