#include "divan/mango/indexes.h"

#include "divan/base/error.h"
#include "divan/docs/reader.h"
#include "divan/index/views/field_mapper.h"

namespace divan::mango {

using index::search::SearchIndex;
using index::views::FieldMapper;
using index::views::ViewIndex;

const index::views::FieldMap& Index::map() const {
  return dynamic_cast<const FieldMapper&>(views->mapper()).view(view().number);
}

const index::Index& Index::built() const {
  if (text) return *text;
  return *views;
}

bool Index::is_partitioned() const {
  return text ? text->is_partitioned() : views && views->origin().is_partitioned;
}

std::string_view Index::filter() const {
  if (text) return text->text_map()->filter_json;
  return views ? map().filter_json : std::string_view();
}

namespace {

// The fields of a full-text index, and the other members of its definition.
void write_text_definition(json::Writer& writer, const index::search::TextMap& map) {
  json::for_each_member(map.json, [&](std::string_view raw_name, std::string_view value) {
    const std::string name = json::unescape(raw_name);
    if (name == "fields") {
      writer.key(name).begin_array();
      for (const auto& field : map.fields)
        writer.begin_object().key(field.name).string(field.type).end_object();
      writer.end_array();
    } else if (name != "partial_filter_selector" || value != "{}") {
      writer.key(name).raw(value);
    }
    return true;
  });
}

}  // namespace

void Index::write(json::Writer& writer) const {
  writer.begin_object().key("ddoc");
  is_all_documents() ? writer.null() : writer.string(design_document);
  writer.key("name").string(name).key("type").string(type());
  if (!is_all_documents()) writer.key("partitioned").boolean(is_partitioned());
  writer.key("def").begin_object();
  if (text) {
    write_text_definition(writer, *text->text_map());
    writer.end_object().end_object();
    return;
  }
  writer.key("fields").begin_array();
  if (is_all_documents()) {
    writer.begin_object().key("_id").string("asc").end_object();
  } else {
    for (const auto& field : map().fields)
      writer.begin_object().key(field.name).string(field.direction).end_object();
  }
  writer.end_array();
  if (is_partial()) writer.key("partial_filter_selector").raw(filter());
  writer.end_object().end_object();
}

namespace {

void add_indexes(std::vector<Index>& indexes, const index::IndexPtr& index) {
  if (const auto views = std::dynamic_pointer_cast<const ViewIndex>(index)) {
    for (auto& found : indexes_in(views)) indexes.push_back(std::move(found));
  } else if (const auto text = std::dynamic_pointer_cast<const SearchIndex>(index);
             text && text->text_map()) {
    indexes.push_back({.design_document = text->design_document(),
                       .name = std::string(text->name()),
                       .columns = {},
                       .text = text});
  }
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
    if (!index::views::is_query(body)) continue;
    for (const auto& kind : kinds) {
      try {
        for (const auto& index : kind->indexes(id, body, &database)) add_indexes(indexes, index);
      } catch (const Error&) {}  // malformed: defines no index; ken has logged it
    }
  }
  return indexes;
}

}  // namespace divan::mango
